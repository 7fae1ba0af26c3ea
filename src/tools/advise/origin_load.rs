//! Measures the load on the origin: requests per second, and requests in flight.

use std::collections::BTreeMap;

use gateway::replay::{Line, Spread};

use super::order::WAITED;

const SECOND: u64 = 1_000_000_000;
/// Maximum number of seconds that are counted at once.
const OPEN: usize = 1 << 16;

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
    /// Number of seconds that ended before all of their requests had arrived: too many were open.
    pub(super) early: u64,
    /// Requests that are at the origin throughout second `next` because they began before it.
    steady: i64,
    came: Spread,
    began: Spread,
    /// Requests in flight, in millionths.
    pub(super) at_once: Spread,
}

/// Load of one second.
#[derive(Debug, Default)]
struct Load {
    /// Requests that arrived.
    came: u64,
    /// Requests that began at the origin, if the log says so.
    began: u64,
    /// Time at the origin of requests that are there for part of the second, in nanoseconds.
    part: u64,
    /// Change of the number of requests that are there throughout this second and later ones.
    change: i64,
}

impl OriginLoad {
    /// Adds a request.
    pub fn add(&mut self, line: &Line) {
        self.put(line);
        // Also done here, not only in `pass`: a log may end without a later call of `pass`.
        while self.open.len() > OPEN {
            self.early += 1;
            self.close_first();
        }
    }

    fn put(&mut self, line: &Line) {
        self.second(line.time.as_nanos() / SECOND).came += 1;
        let Some(recorded) = &line.recorded else {
            return;
        };
        let Some(span) = recorded.at_origin else {
            return;
        };
        let open = self.next.saturating_mul(SECOND);
        let end = line.time + recorded.took;
        let begin = end.before(span).as_nanos().max(open);
        let end = end.as_nanos().max(open);
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

    /// Ends the seconds long before `now`. No more requests of these seconds will arrive.
    pub(super) fn pass(&mut self, now: u64) {
        let over = now.saturating_sub(WAITED) / SECOND;
        while self.open.first_key_value().is_some_and(|it| *it.0 < over) {
            self.close_first();
        }
    }

    /// Ends all seconds.
    pub(super) fn end(&mut self) {
        while !self.open.is_empty() {
            self.close_first();
        }
    }

    /// Returns the requests per second, at the origin if the log says when they were there.
    pub(super) fn of_second(&self) -> &Spread {
        if self.is_timed() {
            &self.began
        } else {
            &self.came
        }
    }

    /// Returns whether the log says how long requests were at their origin.
    pub(super) fn is_timed(&self) -> bool {
        self.began.count() > 0
    }

    fn second(&mut self, second: u64) -> &mut Load {
        self.open.entry(second.max(self.next)).or_default()
    }

    fn close_first(&mut self) {
        let Some((second, load)) = self.open.pop_first() else {
            return;
        };
        let between = second.saturating_sub(self.next);
        if self.steady > 0 {
            let at_once = self.steady.unsigned_abs().saturating_mul(1_000_000);
            self.at_once.add_many(at_once, between);
        }
        self.next = second + 1;
        self.steady += load.change;
        let whole = self.steady.max(0).unsigned_abs().saturating_mul(1_000_000);
        let at_once = whole.saturating_add(load.part.div_ceil(1000));
        for (spread, number) in [
            (&mut self.came, load.came),
            (&mut self.began, load.began),
            (&mut self.at_once, at_once),
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
        assert_eq!(load.at_once.count(), 4);
        assert_eq!(load.at_once.peak(), 1_500_000);
        assert!(load.at_once.at(0.0).abs_diff(250_000) < 1000);
        assert!(load.at_once.at(0.5).abs_diff(500_000) < 1000);
        assert_eq!((load.of_second().count(), load.of_second().peak()), (3, 1));
    }

    #[test]
    fn what_comes_too_late_counts_in_the_first_second_that_is_open() {
        let mut load = load(&[line(1000.0, 0.25)]);
        load.pass(Duration::from_secs(2000).as_nanos().try_into().unwrap());
        assert!(load.open.is_empty());
        load.add(&Form::Json.read(&line(5.0, 5.0)).unwrap());
        load.add(&Form::Csv.read("18446744073.7,a").unwrap());
        load.end();
        assert_eq!(load.at_once.peak(), 250_000);
        assert_eq!((load.came.count(), load.began.count()), (3, 2));
    }

    #[test]
    fn seconds_of_which_nothing_else_counts_are_not_kept_for_ever() {
        let mut load = OriginLoad::default();
        let seconds = OPEN as u64 + 1000;
        for second in 0..seconds {
            load.add(&Form::Csv.read(&format!("{second},a")).unwrap());
        }
        assert_eq!((load.open.len(), load.early), (OPEN, 1000));
        load.end();
        assert_eq!(load.of_second().count(), seconds);
    }
}
