//! Counts of requests in recent spans, which determine the number of slots to lease.

use std::time::Duration;

use crate::{Moment, nanos};

/// Numbers of requests in each of the last spans of one length.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentRequests {
    /// Start of the current span.
    began: Moment,
    /// Count of the current span.
    current: u32,
    /// Counts of the two spans before it, the last one first.
    before: [u32; 2],
}

impl RecentRequests {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            began: now,
            current: 0,
            before: [0; 2],
        }
    }

    /// Counts a request.
    pub fn add(&mut self, length: Duration, now: Moment) {
        *self = self.at(length, now);
        self.current = self.current.saturating_add(1);
    }

    /// Returns the smaller count of the last two whole spans.
    pub(super) fn steady(&self, length: Duration, now: Moment) -> u32 {
        let [last, earlier] = self.at(length, now).before;
        last.min(earlier)
    }

    /// Returns whether no request came in the last spans.
    pub(super) fn is_none(&self, length: Duration, now: Moment) -> bool {
        let here = self.at(length, now);
        here.current == 0 && here.before == [0; 2]
    }

    /// Returns the same counts, seen from the span that contains `now`.
    fn at(&self, length: Duration, now: Moment) -> Self {
        let length = nanos(length);
        let Some(passed) = nanos(now.since(self.began)).checked_div(length) else {
            return Self::new(now);
        };
        let [last, _] = self.before;
        let (current, before) = match passed {
            0 => return *self,
            1 => (0, [self.current, last]),
            2 => (0, [0, self.current]),
            _ => (0, [0; 2]),
        };
        let began = self.began + Duration::from_nanos(passed.saturating_mul(length));
        Self {
            began,
            current,
            before,
        }
    }
}
