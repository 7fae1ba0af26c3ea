//! Demand of a key: counts of requests in recent spans, which determine the number of leased slots.
//!
//! A span is as long as a lease: the time for which a gateway may use slots that it took in
//! advance.

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
        *self = self.moved_to(length, now);
        self.current = self.current.saturating_add(1);
    }

    /// Returns the smaller count of the last two whole spans.
    pub(super) fn steady(&self, length: Duration, now: Moment) -> u32 {
        let [last, earlier] = self.moved_to(length, now).before;
        last.min(earlier)
    }

    /// Returns whether no request came in the last spans.
    pub(super) fn is_none(&self, length: Duration, now: Moment) -> bool {
        let counts = self.moved_to(length, now);
        counts.current == 0 && counts.before == [0; 2]
    }

    /// Returns the counts with the span that contains `now` as the current one.
    fn moved_to(&self, length: Duration, now: Moment) -> Self {
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
