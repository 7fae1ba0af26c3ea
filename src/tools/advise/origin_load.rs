//! Measures the load on the origin: requests per second, and requests in flight.
//!
//! Requests in flight are at the origin at the same time. A second is open while requests may still
//! be counted in it, because lines are not in order of time. Then it is closed.

use std::collections::BTreeMap;

use gateway::replay::{Line, Spread};

use super::order::MAX_DELAY;

const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a millionth of a second.
const NANOS_IN_MILLIONTH: u64 = 1000;
/// Maximum number of open seconds.
const MAX_OPEN: usize = 1 << 16;

/// Load of all requests on their origin: requests per second, and requests in flight.
///
/// The number in flight is an average for each second: the sum of the times that all requests were
/// at the origin during this second (Little's law).
#[derive(Debug, Default)]
pub(super) struct OriginLoad {
    /// The open seconds, by their number since 1970. A second without counts has no entry.
    open: BTreeMap<u64, Load>,
    /// Number of the first second that is not closed.
    first_open: u64,
    /// Number of seconds that were closed too early, because too many were open.
    pub(super) early: u64,
    /// Requests that are at the origin throughout the last closed second, and throughout later ones
    /// up to the next `change`.
    throughout: i64,
    /// Requests that arrived, per second.
    arrived: Spread,
    /// Requests that began at the origin, per second.
    began: Spread,
    /// Requests in flight, in millionths.
    pub(super) in_flight: Spread,
}

/// Load of one second.
#[derive(Debug, Default)]
struct Load {
    /// Requests that arrived.
    arrived: u64,
    /// Requests that began at the origin, if the log says so.
    began: u64,
    /// Time at the origin of requests that are there for a part of the second, in nanoseconds.
    partial_time: u64,
    /// Change of the number of requests that are there throughout this second and later ones.
    change: i64,
}

impl OriginLoad {
    /// Adds a request.
    pub(super) fn add(&mut self, line: &Line) {
        self.count(line);
        while self.open.len() > MAX_OPEN {
            self.early += 1;
            self.close_first();
        }
    }

    /// Counts a request in the seconds in which it arrives and is at the origin.
    fn count(&mut self, line: &Line) {
        self.second(line.time.as_nanos() / SECOND).arrived += 1;
        let Some(recorded) = &line.recorded else {
            return;
        };
        let Some(duration) = recorded.at_origin else {
            return;
        };
        // Closed seconds cannot be changed.
        let earliest = self.first_open.saturating_mul(SECOND);
        let end = line.time + recorded.took;
        let begin = end.before(duration).as_nanos().max(earliest);
        let end = end.as_nanos().max(earliest);
        let (first, last) = (begin / SECOND, end / SECOND);
        self.second(first).began += 1;
        if first == last {
            self.second(first).partial_time += end - begin;
        } else {
            self.second(first).partial_time += (first + 1) * SECOND - begin;
            self.second(first + 1).change += 1;
            let last_load = self.second(last);
            last_load.change -= 1;
            last_load.partial_time += end - last * SECOND;
        }
    }

    /// Closes the seconds more than [`MAX_DELAY`] before `now`. Their requests have all been read.
    pub(super) fn close_old_seconds(&mut self, now: u64) {
        let new_first = now.saturating_sub(MAX_DELAY) / SECOND;
        let is_old = |(second, _): (&u64, &Load)| *second < new_first;
        while self.open.first_key_value().is_some_and(is_old) {
            self.close_first();
        }
    }

    /// Closes all seconds.
    pub(super) fn end(&mut self) {
        while !self.open.is_empty() {
            self.close_first();
        }
    }

    /// Returns the numbers of requests per second that began at the origin.
    ///
    /// If the log does not have that time: the numbers that arrived.
    pub(super) fn per_second(&self) -> &Spread {
        if self.is_timed() {
            &self.began
        } else {
            &self.arrived
        }
    }

    /// Returns whether the log says how long requests were at their origin.
    pub(super) fn is_timed(&self) -> bool {
        self.began.count() > 0
    }

    /// Returns the counts of a second; those of the first open second if it is closed.
    fn second(&mut self, second: u64) -> &mut Load {
        self.open.entry(second.max(self.first_open)).or_default()
    }

    /// Closes the first open second: adds its counts to the distributions.
    fn close_first(&mut self) {
        let Some((second, load)) = self.open.pop_first() else {
            return;
        };
        let millionths = |requests: i64| requests.max(0).unsigned_abs().saturating_mul(1_000_000);
        // In the seconds before it without counts of their own, nothing begins or ends.
        let skipped = second.saturating_sub(self.first_open);
        if self.throughout > 0 {
            self.in_flight
                .add_many(millionths(self.throughout), skipped);
        }
        self.first_open = second + 1;
        self.throughout += load.change;
        let partial = load.partial_time.div_ceil(NANOS_IN_MILLIONTH);
        let in_flight = millionths(self.throughout).saturating_add(partial);
        for (spread, number) in [
            (&mut self.arrived, load.arrived),
            (&mut self.began, load.began),
            (&mut self.in_flight, in_flight),
        ] {
            if number > 0 {
                spread.add(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use gateway::replay::Form;

    /// Formats a line of nginx's log: when the request ended, and how long it took.
    fn line(end: f64, took: f64) -> String {
        format!("{{\"msec\":{end},\"request_time\":{took}}}")
    }

    /// Reads the lines, in this order.
    fn load(lines: &[String]) -> OriginLoad {
        let mut load = OriginLoad::default();
        for line in lines {
            load.add(&Form::Json.read(line).unwrap());
        }
        load
    }

    #[test]
    fn requests_in_flight_are_the_time_at_the_origin_in_each_second() {
        // 0.5 requests are in flight in second 10, 1.5 in second 11, 1 in second 12, and 0.25 in
        // second 13. The last request is there for no time.
        let mut load = load(&[line(13.25, 2.75), line(11.5, 0.5), line(13.0, 0.0)]);
        load.end();
        assert_eq!(load.in_flight.count(), 4);
        assert_eq!(load.in_flight.peak(), 1_500_000);
        assert!(load.in_flight.quantile(0.0).abs_diff(250_000) < 1000);
        assert!(load.in_flight.quantile(0.5).abs_diff(500_000) < 1000);
        assert_eq!(
            (load.per_second().count(), load.per_second().peak()),
            (3, 1)
        );
    }

    #[test]
    fn a_request_of_a_closed_second_counts_in_the_first_open_second() {
        let mut load = load(&[line(1000.0, 0.25)]);
        load.close_old_seconds(Duration::from_secs(2000).as_nanos().try_into().unwrap());
        assert!(load.open.is_empty());
        load.add(&Form::Json.read(&line(5.0, 5.0)).unwrap());
        load.add(&Form::Csv.read("18446744073.7,a").unwrap());
        load.end();
        assert_eq!(load.in_flight.peak(), 250_000);
        assert_eq!((load.arrived.count(), load.began.count()), (3, 2));
    }

    #[test]
    fn a_bounded_number_of_seconds_is_open() {
        let mut load = OriginLoad::default();
        let seconds = MAX_OPEN as u64 + 1000;
        for second in 0..seconds {
            load.add(&Form::Csv.read(&format!("{second},a")).unwrap());
        }
        assert_eq!((load.open.len(), load.early), (MAX_OPEN, 1000));
        load.end();
        assert_eq!(load.per_second().count(), seconds);
    }
}
