//! The parts of the admin API's answers that are shown.
//!
//! Fields that an older gateway does not send are empty or zero.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::plain::Plain;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Zones {
    pub(super) zones: Vec<Zone>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Zone {
    pub(super) name: Plain,
    pub(super) key: Plain,
    pub(super) algorithm: Plain,
    pub(super) rate: Plain,
    pub(super) max_keys: u64,
    pub(super) idle_timeout_seconds: f64,
    pub(super) limits: Vec<Limit>,
    /// Requests since the gateway started, by outcome.
    pub(super) totals: Totals,
    pub(super) rejections: BTreeMap<Plain, u64>,
    pub(super) keys: Keys,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Limit {
    pub(super) route: Plain,
    pub(super) burst: u64,
    pub(super) delay: Option<u64>,
    pub(super) nodelay: bool,
    pub(super) max_wait_seconds: Option<f64>,
    pub(super) dry_run: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Totals {
    pub(super) passed: u64,
    pub(super) delayed: u64,
    pub(super) rejected: u64,
    pub(super) cancelled: u64,
    pub(super) delayed_dry_run: u64,
    pub(super) rejected_dry_run: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Keys {
    pub(super) active: u64,
    pub(super) parked: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Origins {
    pub(super) origins: Vec<Origin>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Origin {
    pub(super) name: Plain,
    pub(super) in_flight: u64,
    pub(super) max_in_flight: Option<u64>,
    pub(super) servers: Vec<Server>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Server {
    pub(super) url: Plain,
    pub(super) healthy: bool,
    pub(super) in_flight: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
}

/// The state of the file. Its settings are shown one zone at a time, and not taken from here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Config {
    pub(super) file: Plain,
    pub(super) loaded_at: Plain,
    pub(super) version: Plain,
    pub(super) error: Option<Broken>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Broken {
    pub(super) since: Plain,
    pub(super) problems: Vec<Problem>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Problem {
    pub(super) line: Option<u64>,
    pub(super) message: Plain,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct History {
    pub(super) samples: Vec<Sample>,
}

/// The sample of one second.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sample {
    pub(super) seq: u64,
    /// Unix time in seconds, by the gateway's clock.
    pub(super) time: f64,
    pub(super) zones: Vec<ZoneSample>,
    pub(super) deepest: Vec<Deep>,
    /// How many times the file was put into force.
    pub(super) reload: u64,
    pub(super) error: Option<Problem>,
    pub(super) stopping: bool,
}

impl Sample {
    pub(super) fn zone(&self, name: &Plain) -> Option<&ZoneSample> {
        self.zones.iter().find(|zone| zone.name == *name)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ZoneSample {
    pub(super) name: Plain,
    /// The rate in force for each key, in requests a second.
    pub(super) rate: f64,
    pub(super) passed: u64,
    pub(super) delayed: u64,
    pub(super) rejected: u64,
    pub(super) cancelled: u64,
    pub(super) dry_run: u64,
    pub(super) depth: u64,
    pub(super) depth_max: u64,
    pub(super) oldest_wait: f64,
    pub(super) wait_p95: Option<f64>,
    pub(super) keys: u64,
}

impl ZoneSample {
    /// Requests that went on in this second.
    pub(super) fn out(&self) -> u64 {
        self.passed
            .saturating_add(self.delayed)
            .saturating_add(self.dry_run)
    }

    /// Requests that came in this second, when `before` requests waited at its beginning.
    ///
    /// A request that came and has no other outcome yet is waiting.
    pub(super) fn came(&self, before: u64) -> u64 {
        let ended = self.out().saturating_add(self.rejected);
        let ended = ended.saturating_add(self.cancelled);
        ended.saturating_add(self.depth).saturating_sub(before)
    }
}

/// A key with many waiting requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Deep {
    pub(super) zone: Plain,
    pub(super) key: Plain,
    pub(super) depth: u64,
    pub(super) oldest_wait: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_is_who_left_and_who_waits_more() {
        let sample = ZoneSample {
            passed: 1,
            delayed: 9,
            rejected: 4,
            cancelled: 1,
            depth: 20,
            ..ZoneSample::default()
        };
        assert_eq!((sample.out(), sample.came(12)), (10, 23));
        assert_eq!(sample.came(100), 0);
    }

    #[test]
    fn what_is_not_known_is_passed_over_and_what_is_missing_is_zero() {
        let text = r#"{"name": "a", "new": [1], "limits": [{"route": "/", "nodelay": true, "delay": null}]}"#;
        let zone: Zone = serde_json::from_str(text).unwrap();
        assert_eq!(zone.limits[0].delay, None);
        assert_eq!(zone.totals.passed, 0);
    }
}
