//! What the gateway says of itself: the status of each zone, origin, route and the store, made each
//! second, and what is said of it.
//!
//! | file | what it is |
//! |---|---|
//! | `views` | the types of the JSON |
//! | `sampler` | the sample of each second |
//! | `live` | the samples of the last ten minutes, and those who get each new one |
//! | `headline` | what matters most now, and why |
//! | `find` | the steps and the result of an experiment that finds what an origin takes, as text, TOML and JSON |
//! | `advisor` | finds the rate that a headline advises |
//! | `what_if` | the last arrivals replayed with other numbers |
//! | `minute` | latencies of the last minute |
//! | `counts` | counts by label |
//! | `gates`, `rooms`, `shared` | what samples and views say alike of the gates and the waiting rooms of origins, and of shared answers |
//! | `overridden` | overrides, as both show them |
//! | `timestamp` | times as text |
//! | `exposition`, `recorder` | metrics in Prometheus format |

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

/// What is known of the last minutes. Its clones share it.
#[derive(Clone, Default)]
pub struct RecentStatus {
    pub(crate) live: live::Live,
    pub(crate) headlines: headline::Headlines,
    pub(crate) minute: minute::Minute,
}
