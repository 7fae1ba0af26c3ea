//! Status of all nouns, once a second: zones, origins, routes, the store, the process.
//!
//! | file | content |
//! |---|---|
//! | `views` | the types of the JSON |
//! | `sampler` | the sample of each second |
//! | `live` | the samples of the last ten minutes, and the clients that receive each new one |
//! | `headline` | the most important state now, and its cause |
//! | `find` | steps and result of an experiment at an origin, as text, TOML and JSON |
//! | `advisor` | finds the rate that a headline advises |
//! | `what_if` | the last arrivals replayed with other numbers |
//! | `minute` | latencies of the last minute |
//! | `counts` | counts by label |
//! | `gates`, `rooms`, `shared` | parts that samples and views have in common |
//! | `overridden` | overrides, as both show them |
//! | `timestamp` | times as text |
//! | `exposition` | metrics in Prometheus format |

mod advisor;
pub(crate) mod counts;
pub(crate) mod exposition;
pub mod find;
pub(crate) mod gates;
pub(crate) mod headline;
mod live;
pub(crate) mod minute;
pub(crate) mod overridden;
pub(crate) mod rooms;
pub(crate) mod sampler;
pub(crate) mod shared;
pub(crate) mod timestamp;
pub(crate) mod views;
pub(crate) mod what_if;

pub use exposition::Recorder;
pub use views::{Plain, Problem};

/// Status of the last minutes. Clones share it.
#[derive(Clone, Default)]
pub struct RecentStatus {
    pub(crate) live: live::Live,
    pub(crate) headlines: headline::Headlines,
    pub(crate) minute: minute::Minute,
}
