//! Counts requests over time, and draws the counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gateway::replay::{Join, Outcome, Timeline};
use limit::to_float;

use super::chart::{self, Line, Panel};

/// Initial width of a timeline column: one millisecond, in nanoseconds.
const FINEST: u64 = 1_000_000;

const CAME: usize = 0;
const LEFT: usize = 1;
const REJECTED: usize = 2;
/// Row of requests that wait: counted when they join and when they depart.
const JOINED: usize = 3;
const DRAINED: usize = 4;
/// Row of the highest number of requests that waited at once.
const DEEPEST: usize = 5;

/// Counts of requests over time.
pub(super) struct Flow {
    line: Timeline<6>,
    /// Departure of each waiting request: the instant, and whether it is let through.
    waiting: BinaryHeap<Reverse<(u64, bool)>>,
    end: u64,
}

impl Flow {
    pub(super) fn new() -> Self {
        use Join::{Peak, Sum};
        Self {
            line: Timeline::new(FINEST, [Sum, Sum, Sum, Sum, Sum, Peak]),
            waiting: BinaryHeap::new(),
            end: 0,
        }
    }

    pub fn add(&mut self, outcome: &Outcome) {
        let now = outcome.time.as_nanos();
        self.drain(now);
        self.line.put(now, CAME, 1);
        self.end = self.end.max(now);
        let (until, leaves) = (outcome.ended().as_nanos(), outcome.departure.is_some());
        if until > now {
            self.line.put(now, JOINED, 1);
            self.waiting.push(Reverse((until, leaves)));
            self.line.put(now, DEEPEST, self.waiting.len() as u64);
        } else {
            self.line.put(now, if leaves { LEFT } else { REJECTED }, 1);
        }
    }

    /// Counts the waiting requests that are due by `now` as let through or rejected.
    fn drain(&mut self, now: u64) {
        while let Some(Reverse((due, leaves))) = self.waiting.peek().copied()
            && due <= now
        {
            self.line.put(due, DEEPEST, self.waiting.len() as u64);
            self.waiting.pop();
            self.line.put(due, if leaves { LEFT } else { REJECTED }, 1);
            self.line.put(due, DRAINED, 1);
            self.end = self.end.max(due);
        }
    }

    /// Ends the trace: all waiting requests depart.
    pub(super) fn end(&mut self) {
        self.drain(u64::MAX);
    }

    /// Draws requests per second, waiting requests, and running totals.
    pub(super) fn picture(&self, title: &str) -> String {
        let end = seconds(self.end.saturating_sub(self.line.begin()));
        let coarse = self.line.coarser(self.width());
        let panels = [
            Panel {
                name: "requests a second",
                lines: vec![
                    ("came", pace(&coarse, CAME)),
                    ("let through", pace(&coarse, LEFT)),
                    ("rejected", pace(&coarse, REJECTED)),
                ],
            },
            Panel {
                name: "requests waiting",
                lines: vec![("", self.depth())],
            },
            Panel {
                name: "let through, all together",
                lines: vec![
                    ("let through", self.total(LEFT)),
                    ("came", self.total(CAME)),
                ],
            },
        ];
        chart::draw(title, end, &panels)
    }

    /// Returns the column width at which most columns contain some requests, in nanoseconds.
    fn width(&self) -> u64 {
        let came: u64 = self.line.columns().iter().map(|column| column[CAME]).sum();
        let columns = usize::try_from(came / 3).unwrap_or(usize::MAX);
        self.line.width_of(columns.clamp(8, 120))
    }

    /// Returns the running total of a row.
    fn total(&self, row: usize) -> Line {
        let mut total = 0;
        let totals = self.line.columns().iter().map(|column| {
            total += column[row];
            to_float(total)
        });
        Line::new(totals, seconds(self.line.width()))
    }

    /// Returns the highest number of waiting requests in each column.
    fn depth(&self) -> Line {
        let mut waiting = 0u64;
        let depths = self.line.columns().iter().map(|column| {
            let at_begin = waiting;
            waiting = (waiting + column[JOINED]).saturating_sub(column[DRAINED]);
            to_float(at_begin.max(column[DEEPEST]))
        });
        Line::new(depths.chain([0.0]), seconds(self.line.width()))
    }
}

/// Returns a row as requests per second.
fn pace(line: &Timeline<6>, row: usize) -> Line {
    let width = seconds(line.width());
    let columns = line.columns().iter();
    let rates = columns.map(|column| to_float(column[row]) / width);
    Line::new(rates.chain([0.0]), width)
}

fn seconds(nanos: u64) -> f64 {
    to_float(nanos) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateway::observe::metrics::LimitStatus;
    use limit::{Excess, Moment};

    #[test]
    fn those_who_wait_are_counted_until_they_leave() {
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
        let at = |time: f64| depth.at(time);
        // The times are exact to one column: about 16 ms for 20 seconds.
        let depths = [0.0, 5.0, 9.9, 10.1, 19.9, 20.1].map(|time| at(time).to_string());
        assert_eq!(depths, ["2", "2", "2", "1", "1", "0"]);
        let last = |row| flow.total(row).at(20.1).to_string();
        assert_eq!([last(LEFT), last(REJECTED)], ["3", "1"]);
    }
}
