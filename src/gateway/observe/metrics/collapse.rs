//! Metrics of requests that share responses (a route that *collapses*).
//!
//! The *leader* is the request that is sent to the origin. Its *followers* wait for the leader's
//! response. A response may be kept in memory for later requests, and is *stale* after its time.

use super::count::Level;
use super::durations::Durations;
use super::label::{CountBy, labels};

labels! {
    /// Source of the response to a request of a route that collapses.
    #[derive(Default)]
    pub enum SharedOutcome {
        /// From the origin, for this request alone.
        #[default]
        Alone = "alone",
        /// From the origin, for this request and its followers.
        Leader = "leader",
        /// From the exchange of another request.
        Follower = "follower",
        /// From memory.
        Kept = "kept",
        /// From memory, although it was stale.
        Stale = "stale",
        /// From the origin, to replace a stale response. No client waits for it.
        Refresh = "refresh",
    }
}

impl SharedOutcome {
    /// Returns whether other requests may wait for the response.
    pub fn is_led(self) -> bool {
        matches!(self, Self::Leader | Self::Refresh)
    }

    /// Returns whether a client sent the request.
    pub fn is_received(self) -> bool {
        self != Self::Refresh
    }

    /// Returns whether the request was sent to the origin.
    pub fn is_sent(self) -> bool {
        matches!(self, Self::Alone | Self::Leader | Self::Refresh)
    }
}

/// Metrics of the requests of an origin whose routes collapse.
#[derive(Default)]
pub struct CollapseMetrics {
    /// Requests, and refreshes of stale responses, by the source of the response.
    pub requests: CountBy<SharedOutcome>,
    /// Number of requests that wait for the response of another one.
    pub waiting: Level,
    /// Waits for the response of another request.
    pub waits: Durations,
}

/// A request that waits for the response of another one, counted until this is dropped.
pub struct SharedWait<'a>(&'a CollapseMetrics);

impl Drop for SharedWait<'_> {
    fn drop(&mut self) {
        self.0.waiting.change(1, 0);
    }
}

impl CollapseMetrics {
    /// Counts a request that waits for the response of another one.
    pub fn wait(&self) -> SharedWait<'_> {
        self.waiting.change(0, 1);
        SharedWait(self)
    }
}
