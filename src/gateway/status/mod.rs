//! Status of the gateway, once a second: the samples of its zones, origins and other parts.
//!
//! Zones, gates, origins, rooms, shared answers and the store have a folder `report` each, beside
//! their code: the type of their sample, how it is taken, their metrics, and their rules of the
//! headline. `route` and `process` are here, because they have no other folder. From the samples
//! this module makes the headline, the events of live pages, and more.
//!
//! | file | content |
//! |---|---|
//! | `sample` | the sample of a second, with the samples of all zones, origins and other parts |
//! | `sampler` | takes a sample each second |
//! | `live` | the samples of the last ten minutes, and the clients that receive each new one |
//! | `headline` | the most important state now, and its cause |
//! | `exposition` | metrics in Prometheus format |
//! | `find` | steps and result of an experiment at an origin, as text and TOML |
//! | `advisor` | finds the rate that a headline advises |
//! | `what_if` | the last arrivals replayed with other numbers |
//! | `minute` | latencies of the last minute |
//! | `counts` | counts by label |
//! | `growth` | growth of counts within a second |
//! | `disconnects` | waits of disconnected clients |
//! | `plain`, `timestamp`, `override_json` | texts, times and overrides in JSON |

mod advisor;
pub(crate) mod counts;
pub(crate) mod disconnects;
pub(crate) mod exposition;
pub mod find;
pub(crate) mod growth;
pub(crate) mod headline;
mod live;
pub(crate) mod minute;
mod override_json;
pub(crate) mod plain;
pub(crate) mod process;
pub(crate) mod route;
pub(crate) mod sample;
pub(crate) mod sampler;
pub(crate) mod timestamp;
pub(crate) mod what_if;

pub use exposition::Recorder;
pub use plain::Plain;
pub use sample::Problem;

/// Status of the last minutes. Clones share it.
#[derive(Clone, Default)]
pub struct RecentStatus {
    pub(crate) live: live::Live,
    pub(crate) headlines: headline::Headlines,
    pub(crate) minute: minute::Minute,
}
