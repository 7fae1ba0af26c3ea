//! Requests without a key among the last hundred requests of each zone.

use std::collections::{HashMap, VecDeque};

use limit::Moment;

use super::sample::RecentRequests;

/// Maximum number of requests in the sum, if they came within a few seconds.
const REQUESTS: u64 = 100;
/// Minimum number of seconds in the sum, however many requests came.
const MIN_SECONDS: usize = 3;
/// Maximum number of seconds in the sum, however few requests came.
const MAX_SECONDS: usize = 600;

/// Requests of the last minutes, by zone.
#[derive(Default)]
pub(crate) struct RecentRequestsByZone(HashMap<String, Seconds>);

/// Requests without a key, and all requests, in each of the last seconds of a zone.
struct Seconds {
    /// Instant at which the zone began with no keys. A change of its `key` begins it anew.
    started: Moment,
    counts: VecDeque<(u64, u64)>,
    sum: (u64, u64),
}

impl RecentRequestsByZone {
    /// Adds the requests of one more second. Returns the sum of the last ones.
    pub fn add(&mut self, zone: &str, started: Moment, no_key: u64, all: u64) -> RecentRequests {
        if !self.0.contains_key(zone) {
            self.0.insert(zone.to_owned(), Seconds::new(started));
        }
        let Some(seconds) = self.0.get_mut(zone) else {
            return RecentRequests::default();
        };
        if seconds.started != started {
            *seconds = Seconds::new(started);
        }
        seconds.add(no_key, all)
    }

    /// Number of known zones.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the zones that the file no longer has.
    pub(crate) fn keep(&mut self, is_zone: impl Fn(&str) -> bool) {
        self.0.retain(|zone, _| is_zone(zone));
    }
}

impl Seconds {
    fn new(started: Moment) -> Self {
        Self {
            started,
            counts: VecDeque::new(),
            sum: (0, 0),
        }
    }

    /// Adds a second and drops old ones. Returns the sum.
    fn add(&mut self, no_key: u64, all: u64) -> RecentRequests {
        self.counts.push_back((no_key, all));
        self.sum = (self.sum.0 + no_key, self.sum.1 + all);
        while let Some((old_no_key, old_all)) = self.counts.front().copied() {
            let is_enough = self.counts.len() > MIN_SECONDS && self.sum.1 - old_all >= REQUESTS;
            if !is_enough && self.counts.len() <= MAX_SECONDS {
                break;
            }
            self.counts.pop_front();
            self.sum = (self.sum.0 - old_no_key, self.sum.1 - old_all);
        }
        RecentRequests {
            no_key: self.sum.0,
            all: self.sum.1,
            span: self.counts.len() as f64,
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
        let mut zones = RecentRequestsByZone::default();
        let mut last = RecentRequests::default();
        for _ in 0..1_000 {
            last = zones.add("slow", at(1), 0, 1);
        }
        assert_eq!((last.all, last.span), (100, 100.0));
        for _ in 0..1_000 {
            last = zones.add("idle", at(1), 0, 0);
        }
        assert_eq!((last.all, last.span), (0, 600.0));
        for _ in 0..10 {
            last = zones.add("busy", at(1), 500, 1_000);
        }
        assert_eq!((last.no_key, last.all, last.span), (1_500, 3_000, 3.0));
    }

    #[test]
    fn a_zone_with_another_key_begins_anew() {
        let mut zones = RecentRequestsByZone::default();
        assert_eq!(zones.add("z", at(1), 20, 20).no_key, 20);
        assert_eq!(zones.add("z", at(2), 0, 5).no_key, 0);
        zones.keep(|_| false);
        assert_eq!(zones.add("z", at(2), 1, 1).all, 1);
    }
}
