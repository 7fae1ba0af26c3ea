use std::time::Duration;

use super::report::Levels;
use super::settings::Target;

/// The state of the origin and its gate, told at each tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// Requests that have left to the origin so far: a count that never goes back.
    pub departed: u64,
    /// Whether a request waited at the gate all the time since the tick before.
    pub has_waited: bool,
    /// What the first waiter waited for since the tick before.
    pub waited: Waited,
    /// The limits that are in force where the experiment sets none.
    pub limits: Levels,
    /// How long the last request to leave had waited at the gate.
    pub wait: Option<Duration>,
    /// Most requests at the origin at once since the tick before.
    pub in_flight: u32,
    /// A number that is another one after each change of a setting in the file.
    pub file: u64,
    /// A number that is another one after a server has come, gone, or changed its health.
    pub servers: u64,
    /// Whether back-off lowers anything now.
    pub is_backed_off: bool,
}

/// How long the first request of a gate's queue waited, by what held it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// For its slot in time, by the rate.
    pub for_pace: Duration,
    /// For a free place at the origin, by `max_in_flight`.
    pub for_places: Duration,
}

impl Waited {
    /// For both.
    pub fn sum(self) -> Duration {
        self.for_pace.saturating_add(self.for_places)
    }

    /// What has been added since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            for_pace: self.for_pace.saturating_sub(before.for_pace),
            for_places: self.for_places.saturating_sub(before.for_places),
        }
    }

    /// Adds the counts of another observation.
    pub fn add(&mut self, more: Self) {
        self.for_pace = self.for_pace.saturating_add(more.for_pace);
        self.for_places = self.for_places.saturating_add(more.for_places);
    }

    /// Whether something else than what is searched held requests back for most of the time.
    pub(super) fn is_held_back(self, target: Target) -> bool {
        match target {
            Target::Rate { .. } => self.for_places > self.for_pace,
            Target::Places { .. } => self.for_pace > self.for_places,
        }
    }
}
