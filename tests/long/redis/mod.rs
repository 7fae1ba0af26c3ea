//! Long tests of limits, gates and permits in a real Redis.
//!
//! The simulations (`src/gateway/simulation`) search faults and their times, by night with
//! thousands of seeds. This folder tests what only real programs show: clusters, and ten gateways
//! at once.
//!
//! | module | content |
//! |---|---|
//! | `shared`, `store`, `incidents` | the everyday tests, with more cases (`support::night`) |
//! | all others | tests that run only here |

mod cluster_split;
mod in_flight;
#[path = "../../counterparts/redis/incidents.rs"]
mod incidents;
mod permits_pace;
#[path = "../../counterparts/redis/shared/mod.rs"]
mod shared;
#[path = "../../counterparts/redis/store/mod.rs"]
mod store;
mod ten_gateways;
