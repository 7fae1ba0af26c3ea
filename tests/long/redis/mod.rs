//! Shared limits, gates and permits in a real Redis, at length.
//!
//! What fails and when is searched by the simulations (`src/gateway/simulation`), by night with thousands of seeds. Here is
//! what only programs show: clusters, and ten gateways at once.
//!
//! | module | content |
//! |---|---|
//! | `shared`, `store`, `incidents` | the everyday tests, with more cases and longer measurements
//! (`support::night`) |
//! | all others | tests that run only here |

mod cluster_split;
mod in_flight;
#[path = "../../counterparts/redis/incidents.rs"]
mod incidents;
mod places_pace;
#[path = "../../counterparts/redis/shared/mod.rs"]
mod shared;
#[path = "../../counterparts/redis/store/mod.rs"]
mod store;
mod ten_gateways;
