//! Requests in the last seconds of a zone, with and without a key.
//!
//! The seconds are so many that they have a hundred requests, but at least three and at most 600.

use std::collections::VecDeque;

use limit::Moment;

use super::sample::RecentRequests;

/// Number of requests that the sum covers, if the last seconds have as many.
const ENOUGH_REQUESTS: u64 = 100;
/// Minimum number of seconds in the sum, however many requests came.
const MIN_SECONDS: usize = 3;
/// Maximum number of seconds in the sum, however few requests came.
const MAX_SECONDS: usize = 600;

/// Numbers of requests in each of the last seconds of a zone, and their sums.
pub(crate) struct RecentSeconds {
    /// Start of the zone. A change of its `key` starts the zone anew, and the sums begin at zero.
    started: Moment,
    /// Requests without a key, and all requests, of each second.
    seconds: VecDeque<(u64, u64)>,
    /// Sum of the requests without a key.
    no_key: u64,
    /// Sum of all requests.
    all: u64,
}

impl RecentSeconds {
    /// Continues the sums of the previous second. Without them, or for a new zone, begins at zero.
    pub(crate) fn resume(previous: Option<Self>, started: Moment) -> Self {
        let previous = previous.filter(|previous| previous.started == started);
        previous.unwrap_or(Self {
            started,
            seconds: VecDeque::new(),
            no_key: 0,
            all: 0,
        })
    }

    /// Adds a second and drops old ones. Returns the sum.
    pub(crate) fn add(&mut self, no_key: u64, all: u64) -> RecentRequests {
        self.seconds.push_back((no_key, all));
        self.no_key += no_key;
        self.all += all;
        while let Some((old_no_key, old_all)) = self.seconds.front().copied() {
            let is_enough =
                self.seconds.len() > MIN_SECONDS && self.all - old_all >= ENOUGH_REQUESTS;
            if !is_enough && self.seconds.len() <= MAX_SECONDS {
                break;
            }
            self.seconds.pop_front();
            self.no_key -= old_no_key;
            self.all -= old_all;
        }
        RecentRequests {
            no_key: self.no_key,
            all: self.all,
            span: self.seconds.len() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Moment {
        Moment::from_nanos(second * 1_000_000_000)
    }

    #[test]
    fn few_requests_are_looked_at_for_ten_minutes_and_many_for_seconds() {
        let add_often = |times, no_key, all| {
            let mut recent = RecentSeconds::resume(None, at(1));
            (0..times).map(|_| recent.add(no_key, all)).last().unwrap()
        };
        let slow = add_often(1_000, 0, 1);
        assert_eq!((slow.all, slow.span), (100, 100.0));
        let idle = add_often(1_000, 0, 0);
        assert_eq!((idle.all, idle.span), (0, 600.0));
        let busy = add_often(10, 500, 1_000);
        assert_eq!((busy.no_key, busy.all, busy.span), (1_500, 3_000, 3.0));
    }

    #[test]
    fn a_zone_with_another_key_begins_anew() {
        let mut zone = RecentSeconds::resume(None, at(1));
        assert_eq!(zone.add(20, 20).no_key, 20);
        let mut same = RecentSeconds::resume(Some(zone), at(1));
        assert_eq!(same.add(1, 1).no_key, 21);
        let mut other = RecentSeconds::resume(Some(same), at(2));
        assert_eq!(other.add(0, 5).no_key, 0);
    }
}
