//! Requests that share answers.

use super::count::Level;
use super::durations::Durations;
use super::label::{CountBy, labels};

labels! {
    /// Where the answer to a request of a route that collapses came from.
    #[derive(Default)]
    pub enum SharedOutcome {
        /// From the origin, for this one alone.
        #[default]
        Alone = "alone",
        /// From the origin, for this one and those that waited for it.
        Leader = "leader",
        /// From the exchange of another request.
        Follower = "follower",
        /// From memory.
        Kept = "kept",
        /// From memory, although it was stale.
        Stale = "stale",
        /// From the origin, behind a stale answer. No client waits for it.
        Refresh = "refresh",
    }
}

impl SharedOutcome {
    /// Whether others may wait for the answer.
    pub fn is_led(self) -> bool {
        matches!(self, Self::Leader | Self::Refresh)
    }

    /// Whether it is the outcome of a client's request.
    pub fn is_asked(self) -> bool {
        self != Self::Refresh
    }

    /// Whether the origin had a request for it.
    pub fn is_sent(self) -> bool {
        matches!(self, Self::Alone | Self::Leader | Self::Refresh)
    }
}

/// Metrics of the requests of an origin whose routes collapse.
#[derive(Debug, Default)]
pub struct CollapseMetrics {
    /// Requests, and fetches behind stale answers, by where the answer came from.
    pub requests: CountBy<SharedOutcome>,
    /// Requests that wait for the answer of another one.
    pub waiting: Level,
    /// How long requests waited for the answer of another one.
    pub waits: Durations,
}

/// A request that waits for the answer of another one, counted until this is dropped.
pub struct SharedWait<'a>(&'a CollapseMetrics);

impl Drop for SharedWait<'_> {
    fn drop(&mut self) {
        self.0.waiting.change(1, 0);
    }
}

impl CollapseMetrics {
    /// Counts a request that waits for the answer of another one.
    pub fn wait(&self) -> SharedWait<'_> {
        self.waiting.change(0, 1);
        SharedWait(self)
    }
}
