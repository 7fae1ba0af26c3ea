//! Counts of requests over time, and a chart of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gateway::replay::{Join, Outcome, Timeline};

use crate::plot::{Chart, Panel, number, seconds, stairs};

/// Initial width of a timeline column: one millisecond, in nanoseconds.
const FINEST: u64 = 1_000_000;

const CAME: usize = 0;
const LEFT: usize = 1;
const REJECTED: usize = 2;
/// Requests that wait, counted when they join and when they leave.
const JOINED: usize = 3;
const DRAINED: usize = 4;
/// The highest number of requests that waited at once.
const DEEPEST: usize = 5;

/// What happened under one file.
pub(super) struct Flow {
    line: Timeline<6>,
    /// When the requests that wait leave, and whether they are let through.
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

    /// The column width at which most columns contain some requests, in nanoseconds.
    fn width(&self) -> u64 {
        let came: u64 = self.line.columns().iter().map(|column| column[CAME]).sum();
        let columns = usize::try_from(came / 3).unwrap_or(usize::MAX);
        self.line.width_of(columns.clamp(8, 120))
    }

    /// A row as requests a second, in columns of at least `width` nanoseconds.
    fn pace(&self, row: usize, width: u64) -> Vec<(f64, f64)> {
        let line = self.line.coarser(width);
        let width = seconds(line.width());
        let values = line
            .columns()
            .iter()
            .map(|column| number(column[row]) / width);
        let mut points = stairs(values, width);
        points.extend(points.last().map(|last| (last.0, 0.0)));
        points
    }

    /// The running total of a row.
    fn total(&self, row: usize) -> Vec<(f64, f64)> {
        let mut total = 0;
        let totals = self.line.columns().iter().map(|column| {
            total += column[row];
            number(total)
        });
        stairs(totals, seconds(self.line.width()))
    }

    /// The highest number of waiting requests in each column.
    fn depth(&self) -> Vec<(f64, f64)> {
        let mut waiting = 0u64;
        let depths = self.line.columns().iter().map(|column| {
            let at_begin = waiting;
            waiting = (waiting + column[JOINED]).saturating_sub(column[DRAINED]);
            number(at_begin.max(column[DEEPEST]))
        });
        let mut points = stairs(depths, seconds(self.line.width()));
        points.extend(points.last().map(|last| (last.0, 0.0)));
        points
    }
}

/// A chart of what happened under each file, by its name.
pub(super) fn picture(title: &str, flows: &[(&str, &Flow)]) -> Chart {
    let end = flows
        .iter()
        .map(|(_, flow)| seconds(flow.end.saturating_sub(flow.line.begin())))
        .fold(0.0, f64::max);
    let mut chart = Chart::new(title).x_label("seconds").same_x();
    // All panels use the same width, so that equal traffic looks equal in each.
    let width = flows
        .iter()
        .map(|(_, flow)| flow.width())
        .max()
        .unwrap_or(FINEST);
    let is_one = flows.len() == 1;
    for (name, flow) in flows {
        let label = if is_one {
            "requests a second".to_owned()
        } else {
            format!("{name}, requests a second")
        };
        let panel = Panel::new(label)
            .step("came", &flow.pace(CAME, width))
            .step("let through", &flow.pace(LEFT, width))
            .step("rejected", &flow.pace(REJECTED, width));
        chart = chart.panel(panel.x_to(end).height(if is_one { 180 } else { 110 }));
    }
    let mut depth = Panel::new("requests waiting");
    let mut total = Panel::new("let through, all together");
    for (name, flow) in flows {
        let name = if is_one { "" } else { *name };
        depth = depth.step(name, &flow.depth());
        total = total.step(if is_one { "let through" } else { name }, &flow.total(LEFT));
    }
    if let Some((_, flow)) = flows.first() {
        total = total.step("came", &flow.total(CAME));
    }
    chart.panel(depth.x_to(end)).panel(total.x_to(end))
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
        let at = |time: f64| depth.iter().rfind(|(from, _)| *from <= time).unwrap().1;
        // Precise to one column: for 20 seconds, about 16 ms.
        let depths = [0.0, 5.0, 9.9, 10.1, 19.9, 20.1].map(|time| at(time).to_string());
        assert_eq!(depths, ["2", "2", "2", "1", "1", "0"]);
        let last = |row| flow.total(row).last().unwrap().1.to_string();
        assert_eq!(
            (last(LEFT), last(REJECTED)),
            ("3".to_owned(), "1".to_owned())
        );
    }
}
