//! Slots of the same origin that the previous process still uses. This process leaves them free.
//!
//! A *slot* is an instant at which one request may leave for the origin. Slots are an interval of
//! the rate apart. *Ticks* are instants at a rate, without rounding: see `slots`.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Moment, Rate, Ticks, moment, ticks};

/// Spans of time that the departures of another process and their intervals take.
///
/// A departure of this process is at least an interval before a span, or after it. The time of a
/// span delays later slots. Nearly always there is no span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserved {
    /// Start and end of each span, in order, without overlap.
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

    /// Returns the first instant from `ready` on at which a departure and its interval are free.
    pub(super) fn first_fit(&self, rate: Rate, ready: Ticks) -> Ticks {
        let mut due = ready;
        for (from, to) in &self.spans {
            if due + rate.ticks_per_request() <= ticks(rate, *from) {
                break;
            }
            due = due.max(ticks(rate, *to));
        }
        due
    }

    /// Returns the next slot after a departure at `due` with this cost.
    ///
    /// It is one interval later for each unit of the cost. The time of reserved spans in between is
    /// added.
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

    /// Returns the time by which reserved spans delay departures.
    ///
    /// The departures start at `first` and have a total cost of `costs`.
    pub(super) fn delay(&self, rate: Rate, first: Ticks, costs: u64) -> Duration {
        if self.is_empty() {
            return Duration::ZERO;
        }
        let end = moment(rate, self.after(rate, first, costs));
        let end_without_spans = moment(rate, first) + rate.time_for(costs);
        end.since(end_without_spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, ms, rate};

    #[test]
    fn reserved_time_does_not_count_as_own_time() {
        let rate = rate("10r/s");
        let spans = [(200, 300), (350, 450)].map(|(from, to)| (at(from), at(to)));
        let reserved = Reserved::new(spans.to_vec());
        // A departure at some milliseconds, its cost, the next slot, and the delay by the spans.
        for (millis, cost, next, delay) in [(0, 2, 200, 0), (100, 2, 500, 200), (450, 3, 750, 0)] {
            let due = ticks(rate, at(millis));
            assert_eq!(moment(rate, reserved.after(rate, due, cost)), at(next));
            assert_eq!(reserved.delay(rate, due, cost), ms(delay));
        }
    }
}
