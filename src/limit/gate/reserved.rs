//! Slots of the same origin that another process uses. This process leaves them free.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Moment, Rate, Ticks, moment, ticks};

/// Spans of time that the departures of another process and their intervals take.
///
/// A departure of this process is at least an interval before a span, or after it. The time of a
/// span delays later slots. Nearly always there is no span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserved {
    /// In order, without overlap.
    spans: VecDeque<(Moment, Moment)>,
}

impl Reserved {
    /// Creates it from spans in any order, which may overlap.
    pub(super) fn new(mut spans: Vec<(Moment, Moment)>) -> Self {
        spans.sort_unstable();
        let mut reserved = Self::default();
        for (from, to) in spans {
            reserved.add(from, to);
        }
        reserved
    }

    /// Adds a span that begins no earlier than the other spans.
    fn add(&mut self, from: Moment, to: Moment) {
        match self.spans.back_mut() {
            Some((_, last)) if from <= *last => *last = to.max(*last),
            _ if from < to => self.spans.push_back((from, to)),
            _ => {}
        }
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = (Moment, Moment)> {
        self.spans.iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Removes spans that are over at `now`.
    pub(super) fn forget(&mut self, now: Moment) {
        while self.spans.front().is_some_and(|(_, to)| *to <= now) {
            self.spans.pop_front();
        }
    }

    /// Returns the first instant from `ready` on with a free interval for a departure.
    pub(super) fn fit(&self, rate: Rate, ready: Ticks) -> Ticks {
        let mut due = ready;
        for (from, to) in &self.spans {
            if due + rate.ticks_per_request() <= ticks(rate, *from) {
                break;
            }
            due = due.max(ticks(rate, *to));
        }
        due
    }

    /// Returns the end of a departure at `due` with cost `cost`. Reserved spans do not count.
    pub(super) fn after(&self, rate: Rate, due: Ticks, cost: u64) -> Ticks {
        let mut end = due + Ticks::from(cost) * rate.ticks_per_request();
        for (from, to) in &self.spans {
            let (from, to) = (ticks(rate, *from).max(due), ticks(rate, *to));
            if from >= end {
                break;
            }
            end += (to - from).max(0);
        }
        end
    }

    /// Returns the delay of departures by reserved spans.
    ///
    /// The departures start at `first` and have a total cost of `costs`.
    pub(super) fn delay(&self, rate: Rate, first: Ticks, costs: u64) -> Duration {
        if self.is_empty() {
            return Duration::ZERO;
        }
        let end = moment(rate, self.after(rate, first, costs));
        let alone = moment(rate, first) + rate.time_for(costs);
        end.since(alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn reserved(spans: &[(u64, u64)]) -> Reserved {
        Reserved::new(
            spans
                .iter()
                .map(|(from, to)| (at(*from), at(*to)))
                .collect(),
        )
    }

    #[test]
    fn reserved_time_does_not_count_as_own_time() {
        let rate: Rate = "10r/s".parse().unwrap();
        let known = reserved(&[(200, 300), (350, 450)]);
        let after = |millis, cost| moment(rate, known.after(rate, ticks(rate, at(millis)), cost));
        assert_eq!(after(0, 2), at(200));
        assert_eq!(after(100, 2), at(500));
        assert_eq!(after(450, 3), at(750));
        let delay = |millis, cost| known.delay(rate, ticks(rate, at(millis)), cost);
        assert_eq!(delay(100, 2), Duration::from_millis(200));
        assert_eq!(delay(450, 9), Duration::ZERO);
    }
}
