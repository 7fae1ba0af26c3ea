//! Limit that an origin's servers set for the requests in flight.

use std::sync::Arc;

use limit::Moment;

/// Number of requests that an origin's servers allow now; `None`: the servers set no limit.
#[derive(Clone)]
pub(crate) struct Room(Arc<dyn Fn(Moment) -> Option<usize> + Send + Sync>);

impl Room {
    /// Creates it from a function. The function must not lock, as it runs behind the gate's lock.
    pub(crate) fn new(now: impl Fn(Moment) -> Option<usize> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the number of requests that the servers allow at `now`.
    pub(super) fn at(&self, now: Moment) -> Option<usize> {
        (self.0)(now)
    }
}
