//! Measures the load on the origin: requests per second, and requests in flight.

use std::collections::BTreeMap;

use gateway::replay::{Line, Spread};

use super::order::MAX_DELAY;

const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a millionth of a second.
const NANOS_IN_MILLIONTH: u64 = 1000;
/// Maximum number of seconds that are counted at once.
const MAX_OPEN: usize = 1 << 16;

/// Load of all requests on their origin: requests per second, and requests in flight.
///
/// The number in flight is the average of each second: the total time that requests spend at the
/// origin in it (Little's law).
#[derive(Debug, Default)]
pub(super) struct OriginLoad {
    /// Seconds that have not ended yet.
    open: BTreeMap<u64, Load>,
    /// First second that has not ended yet.
    next: u64,
    /// Number of seconds that were ended too early, because too many were open.
    pub(super) early: u64,
    /// Requests that are at the origin throughout second `next` because they began before it.
    throughout: i64,
    /// Requests per second: that arrived, and that began at the origin.
    arrived: Spread,
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
    /// Time at the origin of requests that are there for part of the second, in nanoseconds.
    part: u64,
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
        let Some(span) = recorded.at_origin else {
            return;
        };
        // Seconds that have ended cannot be changed.
        let earliest = self.next.saturating_mul(SECOND);
        let end = line.time + recorded.took;
        let begin = end.before(span).as_nanos().max(earliest);
        let end = end.as_nanos().max(earliest);
        let (first, last) = (begin / SECOND, end / SECOND);
        self.second(first).began += 1;
        if first == last {
            self.second(first).part += end - begin;
        } else {
            self.second(first).part += (first + 1) * SECOND - begin;
            self.second(first + 1).change += 1;
            let of_last = self.second(last);
            of_last.change -= 1;
            of_last.part += end - last * SECOND;
        }
    }

    /// Ends the seconds more than [`MAX_DELAY`] before `now`. Their requests have all been read.
    pub(super) fn close_old_seconds(&mut self, now: u64) {
        let first_open = now.saturating_sub(MAX_DELAY) / SECOND;
        while self
            .open
            .first_key_value()
            .is_some_and(|it| *it.0 < first_open)
        {
            self.close_first();
        }
    }

    /// Ends all seconds.
    pub(super) fn end(&mut self) {
        while !self.open.is_empty() {
            self.close_first();
        }
    }

    /// Returns the requests per second: those that began at the origin, if the log has that time.
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

    /// Returns the counts of a second; those of the first open second if that one has ended.
    fn second(&mut self, second: u64) -> &mut Load {
        self.open.entry(second.max(self.next)).or_default()
    }

    /// Ends the first open second.
    fn close_first(&mut self) {
        let Some((second, load)) = self.open.pop_first() else {
            return;
        };
        let millionths = |requests: i64| requests.max(0).unsigned_abs().saturating_mul(1_000_000);
        // Seconds before this one that have no counts of their own.
        let skipped = second.saturating_sub(self.next);
        if self.throughout > 0 {
            self.in_flight
                .add_many(millionths(self.throughout), skipped);
        }
        self.next = second + 1;
        self.throughout += load.change;
        let part = load.part.div_ceil(NANOS_IN_MILLIONTH);
        let in_flight = millionths(self.throughout).saturating_add(part);
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

    fn load(lines: &[String]) -> OriginLoad {
        let mut load = OriginLoad::default();
        for line in lines {
            load.add(&Form::Json.read(line).unwrap());
        }
        load
    }

    #[test]
    fn at_once_is_the_time_at_the_origin_in_each_second() {
        // Half a request is in flight in second 10, one in seconds 11 and 12, and a quarter in
        // second 13.
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
    fn what_comes_too_late_counts_in_the_first_second_that_is_open() {
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
    fn seconds_of_which_nothing_else_counts_are_not_kept_for_ever() {
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
