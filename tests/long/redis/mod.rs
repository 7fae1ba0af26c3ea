//! Long tests of limits, gates and permits in a real Redis, under every failure.
//!
//! | module | content |
//! |---|---|
//! | `shared`, `store`, `incidents` | the everyday tests, with more cases and longer measurements
//! (`support::night`) |
//! | all others | tests that run only here |

mod bills;
mod cluster_split;
mod grid_backing_off;
mod grid_cluster;
mod grid_fairness;
mod grid_keys;
mod grid_network;
mod grid_stream;
mod grid_table;
mod in_flight;
#[path = "../../counterparts/redis/incidents.rs"]
mod incidents;
mod leases;
mod others;
mod places;
mod places_pace;
#[path = "../../counterparts/redis/shared/mod.rs"]
mod shared;
#[path = "../../counterparts/redis/store/mod.rs"]
mod store;
mod ten_gateways;
