//! Records of a state file: one line each, as JSON. `format` is the file around them.
//!
//! The records of zones and keys are in `zone/saved`, the state of a gate is in `gate/saved`. A
//! gate bounds the pace of all requests to an origin.

use std::fs;
use std::time::Duration;

use limit::Moment;
use serde::{Deserialize, Serialize};

use crate::gate::SavedOriginGate;
use crate::http::gateway::SavedCost;
use crate::time::clock;
use crate::zone::{KeyRecord, ZoneRecord};

/// Record: one line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// First line: the time of the state in all other lines.
    Written(Stamp),
    /// A zone; its keys follow.
    Zone(ZoneRecord),
    /// A key of the last zone.
    Key(KeyRecord),
    /// Gate of an origin.
    Gate(GateRecord),
}

/// A gate. Times are in nanoseconds from the time of the state on.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GateRecord {
    pub(super) origin: String,
    #[serde(flatten)]
    pub(super) saved: SavedOriginGate,
    /// Learned costs of the routes to the origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) costs: Vec<SavedCost>,
}

/// Time of writing, so that another process can compute the age of the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    /// Wall clock, in nanoseconds since the Unix epoch.
    wall: u64,
    /// Monotonic clock, in nanoseconds since the start of the machine.
    monotonic: u64,
    /// Id of this start of the machine; empty if unknown.
    boot: String,
}

impl Stamp {
    /// Returns the present time.
    pub(super) fn now() -> Self {
        Self {
            wall: clock::wall().as_nanos(),
            monotonic: clock::monotonic_nanos(),
            boot: boot_id(),
        }
    }

    /// Returns the duration from this stamp to `now`; `None` if the stamp is in the future.
    ///
    /// On the same start of the machine, a step of the wall clock in between has no effect.
    pub(super) fn age_at(&self, now: &Self) -> Option<Duration> {
        let is_same_boot = !self.boot.is_empty() && self.boot == now.boot;
        let nanos = if is_same_boot {
            now.monotonic.checked_sub(self.monotonic)
        } else {
            now.wall.checked_sub(self.wall)
        };
        nanos.map(Duration::from_nanos)
    }

    /// Returns the instant of this stamp in this process, and its age; `None`: it is in the future.
    pub(super) fn instant_and_age(&self) -> Option<(Moment, Duration)> {
        let age = self.age_at(&Self::now())?;
        Some((clock::now().before(age), age))
    }
}

/// Returns the id of this start of the machine; empty if the kernel does not report it.
fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_wall_clock_counts_only_over_a_start_of_the_machine() {
        // `boot`: id of the machine's start.
        let stamp = |wall, monotonic, boot: &str| Stamp {
            wall,
            monotonic,
            boot: boot.to_owned(),
        };
        let written = stamp(1000, 50, "a");
        let nanos = |now: Stamp| written.age_at(&now).map(|age| age.as_nanos());
        assert_eq!(nanos(stamp(1010, 60, "a")), Some(10));
        assert_eq!(nanos(stamp(10, 60, "a")), Some(10));
        assert_eq!(nanos(stamp(9_999, 60, "a")), Some(10));
        assert_eq!(nanos(stamp(1_010, 3, "b")), Some(10));
        assert_eq!(nanos(stamp(999, 3, "b")), None);
        assert_eq!(nanos(stamp(1_010, 49, "a")), None);
        let found = stamp(1, 1, "").age_at(&stamp(5, 0, ""));
        assert_eq!(found, Some(Duration::from_nanos(4)));
    }

    #[test]
    fn the_start_of_the_machine_is_known() {
        let (one, other) = (Stamp::now(), Stamp::now());
        assert!(!one.boot.is_empty());
        assert!(one.age_at(&other).unwrap() < Duration::from_secs(5));
    }
}
