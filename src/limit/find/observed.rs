//! Input of an experiment at each tick: the state of the origin and its gate.
//!
//! The experiment searches one limit of the gate: its rate (*pace*), or its permits (the requests
//! at the origin, `max_in_flight`). The other limit may hold requests back meanwhile.

use std::time::Duration;

use super::report::Levels;
use super::settings::Target;

/// State of the origin and its gate, passed to each tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// Total of requests that were sent to the origin. Never decreases.
    pub departed: u64,
    /// Whether a request waited at the gate all the time since the last tick.
    pub has_waited: bool,
    /// Duration that the first waiter waited since the last tick, by limit.
    pub waited: Waited,
    /// Effective limits where the experiment sets none.
    pub limits: Levels,
    /// Duration that the last departed request had waited at the gate.
    pub wait: Option<Duration>,
    /// Largest number of requests in flight since the last tick.
    pub in_flight: u32,
    /// Version of the settings: a number that changes with each change of the file.
    pub file: u64,
    /// Version of the servers: a number that changes when a server is added, removed, or changes
    /// its health.
    pub servers: u64,
    /// Whether backoff lowers any limit now.
    pub is_backed_off: bool,
}

/// Duration that the first request of a gate's queue waited, by the limit that held it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Duration that it waited for its slot, because of the rate.
    pub for_pace: Duration,
    /// Duration that it waited for a free permit of the origin, because of `max_in_flight`.
    pub for_permits: Duration,
}

impl Waited {
    /// Returns the sum of both durations.
    pub fn sum(self) -> Duration {
        self.for_pace.saturating_add(self.for_permits)
    }

    /// Returns the difference to an earlier value.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            for_pace: self.for_pace.saturating_sub(before.for_pace),
            for_permits: self.for_permits.saturating_sub(before.for_permits),
        }
    }

    /// Adds the durations of another observation.
    pub fn add(&mut self, more: Self) {
        self.for_pace = self.for_pace.saturating_add(more.for_pace);
        self.for_permits = self.for_permits.saturating_add(more.for_permits);
    }

    /// Returns whether the limit that is not searched held requests back most of the time.
    pub(super) fn is_held_back(self, target: Target) -> bool {
        match target {
            Target::Rate { .. } => self.for_permits > self.for_pace,
            Target::Permits { .. } => self.for_pace > self.for_permits,
        }
    }
}
