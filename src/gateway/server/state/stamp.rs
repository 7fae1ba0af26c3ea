use std::fs;
use std::time::Duration;

use limit::Moment;
use serde::{Deserialize, Serialize};

use crate::time::clock;

/// When a state was written, for another process to find out how long ago that was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    /// By the wall clock, in nanoseconds since the Unix epoch.
    wall: u64,
    /// By the monotonic clock, in nanoseconds since the machine was started.
    monotonic: u64,
    /// Which start of the machine that was; empty if unknown.
    boot: String,
}

impl Stamp {
    /// The present time.
    pub(super) fn now() -> Self {
        Self {
            wall: clock::wall().as_nanos(),
            monotonic: clock::since_boot(),
            boot: boot(),
        }
    }

    /// The time from this stamp to `now`; `None` if it would be in the future.
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

    /// The moment of this process at which another process wrote this stamp.
    pub(super) fn moment(&self) -> Option<(Moment, Duration)> {
        let age = self.age_at(&Self::now())?;
        Some((clock::now().before(age), age))
    }
}

/// Which start of the machine this is; empty if the kernel does not say.
fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.map_or_else(|_| String::new(), |boot| boot.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_wall_clock_counts_only_over_a_start_of_the_machine() {
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
    fn this_machine_knows_its_start() {
        let (one, other) = (Stamp::now(), Stamp::now());
        assert!(!one.boot.is_empty());
        assert!(one.age_at(&other).unwrap() < Duration::from_secs(5));
    }
}
