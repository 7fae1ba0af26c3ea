//! Counts requests over time, and draws the counts.
//!
//! `timeline` keeps the counts in columns, and `chart` draws lines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gateway::replay::Outcome;
use limit::to_float;

use super::chart::{self, Line, Panel};
use super::timeline::{Column, Timeline};

/// Initial width of a column: one millisecond, in nanoseconds.
const INITIAL_WIDTH: u64 = 1_000_000;

/// Counts of requests over time.
pub(super) struct Flow {
    timeline: Timeline,
    /// End of the wait of each waiting request, the earliest first.
    ///
    /// An entry is the instant in nanoseconds, and whether the request is let through then.
    waiting: BinaryHeap<Reverse<(u64, bool)>>,
    /// Latest arrival or end of a wait, in nanoseconds.
    end: u64,
}

impl Flow {
    pub(super) fn new() -> Self {
        Self {
            timeline: Timeline::new(INITIAL_WIDTH),
            waiting: BinaryHeap::new(),
            end: 0,
        }
    }

    /// Counts a request. Requests must be added in order of time.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        let now = outcome.time.as_nanos();
        self.end_waits(now);
        self.end = self.end.max(now);
        let (wait_end, is_passed) = (outcome.ended().as_nanos(), outcome.departure.is_some());
        let column = self.timeline.column(now);
        column.arrived += 1;
        if wait_end > now {
            column.joined += 1;
            self.waiting.push(Reverse((wait_end, is_passed)));
            column.deepest = column.deepest.max(self.waiting.len() as u64);
        } else {
            count_end(column, is_passed);
        }
    }

    /// Counts the requests whose wait ends by `now`, in nanoseconds, as let through or rejected.
    fn end_waits(&mut self, now: u64) {
        while let Some(Reverse((due, is_passed))) = self.waiting.peek().copied()
            && due <= now
        {
            let column = self.timeline.column(due);
            column.deepest = column.deepest.max(self.waiting.len() as u64);
            column.drained += 1;
            count_end(column, is_passed);
            self.waiting.pop();
            self.end = self.end.max(due);
        }
    }

    /// Ends the trace: the waits of all requests end.
    pub(super) fn end(&mut self) {
        self.end_waits(u64::MAX);
    }

    /// Draws requests per second, waiting requests, and running totals.
    pub(super) fn picture(&self, title: &str) -> String {
        let end = seconds(self.end.saturating_sub(self.timeline.begin()));
        let panels = [
            Panel {
                name: "requests a second",
                lines: vec![
                    ("came", self.rate(|column| column.arrived)),
                    ("let through", self.rate(|column| column.departed)),
                    ("rejected", self.rate(|column| column.rejected)),
                ],
            },
            Panel {
                name: "requests waiting",
                lines: vec![("", self.depth())],
            },
            Panel {
                name: "let through, all together",
                lines: vec![
                    ("let through", self.total(|column| column.departed)),
                    ("came", self.total(|column| column.arrived)),
                ],
            },
        ];
        chart::draw(title, end, &panels)
    }

    /// Returns a count as requests per second, in columns of which most contain some requests.
    fn rate(&self, count: impl Fn(&Column) -> u64) -> Line {
        let arrived: u64 = self.timeline.columns.iter().map(|it| it.arrived).sum();
        // At least three requests in each on average, but between 8 and 120 columns.
        let max_columns = usize::try_from(arrived / 3).unwrap_or(usize::MAX);
        let coarse = self.timeline.coarser(max_columns.clamp(8, 120));
        let width = seconds(coarse.width);
        let columns = coarse.columns.iter();
        let rates = columns.map(|column| to_float(count(column)) / width);
        // After the last column the line goes down to zero.
        Line::new(rates.chain([0.0]), width)
    }

    /// Returns the running total of a count.
    fn total(&self, count: impl Fn(&Column) -> u64) -> Line {
        let mut total = 0;
        let totals = self.timeline.columns.iter().map(|column| {
            total += count(column);
            to_float(total)
        });
        Line::new(totals, seconds(self.timeline.width))
    }

    /// Returns the highest number of waiting requests in each column.
    fn depth(&self) -> Line {
        let mut waiting = 0u64;
        let depths = self.timeline.columns.iter().map(|column| {
            let at_begin = waiting;
            waiting = (waiting + column.joined).saturating_sub(column.drained);
            to_float(at_begin.max(column.deepest))
        });
        Line::new(depths.chain([0.0]), seconds(self.timeline.width))
    }
}

/// Counts a request that is let through or rejected.
fn count_end(column: &mut Column, is_passed: bool) {
    if is_passed {
        column.departed += 1;
    } else {
        column.rejected += 1;
    }
}

/// Converts nanoseconds to seconds.
fn seconds(nanos: u64) -> f64 {
    to_float(nanos) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateway::observe::metrics::LimitStatus;
    use limit::{Excess, Moment};

    #[test]
    fn requests_are_counted_as_waiting_until_their_wait_ends() {
        let mut flow = Flow::new();
        let second = |second: u64| Moment::from_nanos(second * 1_000_000_000);
        for departure in [Some(0), Some(10), Some(20), None] {
            flow.add(&Outcome {
                time: second(0),
                status: LimitStatus::Passed,
                departure: departure.map(second),
                excess: Excess::default(),
                at_gate: None,
            });
        }
        flow.end();
        let depth = flow.depth();
        // The times are exact to one column: about 16 ms for 20 seconds.
        let times = [0.0, 5.0, 9.9, 10.1, 19.9, 20.1];
        let depths = times.map(|time| depth.at(time).to_string());
        assert_eq!(depths, ["2", "2", "2", "1", "1", "0"]);
        let departed = flow.total(|column| column.departed).at(20.1).to_string();
        let rejected = flow.total(|column| column.rejected).at(20.1).to_string();
        assert_eq!([departed, rejected], ["3", "1"]);
    }
}
