use serde::{Deserialize, Serialize};

use super::{Plain, Sample};

/// `/api/now`: the last sample, and the gateway's clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Now {
    /// What tells this process from all others: another one after each start.
    pub id: Plain,
    /// Unix time in seconds, by the gateway's clock, at which this was answered.
    pub time: f64,
    /// `None` in the first second.
    pub sample: Option<Sample>,
}
