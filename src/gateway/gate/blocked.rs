//! Causes for which a gate blocks its first waiter, and the total time of each cause.

use std::time::Duration;

use limit::Moment;

use super::Queue;
use crate::observe::metrics::labels;

labels! {
    /// Cause for which a gate blocks its first waiter.
    pub enum BlockedBy {
        /// Its slot has not come.
        Pace = "pace",
        /// No permit is free at the origin.
        InFlight = "in_flight",
        /// The origin has asked for a pause, or an override pauses the gate.
        Pause = "pause",
        /// The origin cannot be reached.
        Outage = "outage",
    }
}

impl BlockedBy {
    /// Returns the cause that blocks the gate now; `None` if no request waits.
    pub(super) fn of(gate: &Queue, now: Moment) -> Option<Self> {
        if gate.depth() == 0 {
            return None;
        }
        Some(if gate.is_out() {
            Self::Outage
        } else if gate.opens() > now {
            Self::Pause
        } else if gate.has_permit() || gate.is_between_slots(now) {
            // With permits of a pool, the gate requests a permit only when the slot is near.
            Self::Pace
        } else {
            Self::InFlight
        })
    }
}

/// Time that the gate was blocked, by cause, in the order of [`BlockedBy::ALL`].
pub type BlockedTimes = [Duration; BlockedBy::ALL.len()];

/// Adds up the time for which a gate is blocked by each cause.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    pub(super) times: BlockedTimes,
    /// Present cause, and the instant since which it blocks the gate.
    since: Option<(BlockedBy, Moment)>,
}

impl Blocked {
    /// Records the cause that blocks the gate from `now` on.
    pub(super) fn note(&mut self, by: Option<BlockedBy>, now: Moment) {
        let before = std::mem::replace(&mut self.since, by.map(|by| (by, now)));
        if let Some((by, since)) = before {
            self.times[by as usize] += now.since(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_own_time() {
        let at = |seconds| Moment::default() + Duration::from_secs(seconds);
        let mut blocked = Blocked::default();
        blocked.note(None, at(1));
        blocked.note(Some(BlockedBy::Pace), at(2));
        blocked.note(Some(BlockedBy::Pace), at(3));
        blocked.note(Some(BlockedBy::Pause), at(5));
        blocked.note(None, at(6));
        blocked.note(Some(BlockedBy::InFlight), at(8));
        blocked.note(Some(BlockedBy::Outage), at(12));
        blocked.note(None, at(14));
        assert_eq!(blocked.times.map(|time| time.as_secs()), [3, 4, 1, 2]);
    }
}
