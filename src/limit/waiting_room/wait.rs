//! Predicted waits of visitors at a waiting room, and the time of their next poll.
//!
//! A waiting visitor has drawn a *number*. Its *position* is its rank in the order of calls.

use std::time::Duration;

use super::WaitingRoom;
use crate::stable_hash::spread;
use crate::{Moment, to_float, to_whole};

/// Lower bound of `Retry-After`, in seconds.
const MIN_RETRY: f64 = 2.0;
const MAX_RETRY: f64 = MAX_RETRY_AFTER.as_secs_f64();
/// Upper bound of `Retry-After`.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Seconds after the opening over which the polls of earlier visitors are spread.
const AFTER_OPENING: f64 = 8.0;

/// Answer to a visitor who waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitingVisitor {
    /// Position in the queue, from 1; `None` before the room opens.
    pub position: Option<u64>,
    /// Predicted wait; `None` if calls are paused, or nothing is known.
    pub wait: Option<Duration>,
    /// Seconds after which to poll again.
    pub retry_after: u64,
}

impl WaitingRoom {
    /// Returns the answer to a visitor, and remembers the due time of the next poll.
    pub(super) fn answer(&mut self, number: u64, now: Moment) -> WaitingVisitor {
        let position = self.position(number);
        let mut waiting = self.waiting_at(position, now);
        waiting.retry_after = self.retry_after(&waiting, number, now);
        let due = now + Duration::from_secs(waiting.retry_after);
        let mut polls = std::mem::take(&mut self.polls);
        polls.answer(number, due, |other| {
            let other = self.position(other);
            other <= self.called || other > position
        });
        self.polls = polls;
        waiting
    }

    /// Returns the answer to the visitor at `nth` position behind all waiting visitors.
    ///
    /// The visitor has no position yet.
    pub(super) fn behind(&self, nth: u64, number: u64, now: Moment) -> WaitingVisitor {
        let mut waiting = self.waiting_at(self.called + self.waiting() + nth, now);
        waiting.retry_after = self.retry_after(&waiting, number, now);
        waiting
    }

    /// Returns the seconds until the next poll: a tenth of the remaining time.
    ///
    /// It varies with the number, so that polls do not coincide. Before the opening, the next poll
    /// is at most a few seconds after it, because the order is unknown until then.
    fn retry_after(&self, waiting: &WaitingVisitor, number: u64, now: Moment) -> u64 {
        let spread = spread(number);
        let tenth = (self.time_left(waiting, now) / 10.0).clamp(MIN_RETRY, MAX_RETRY);
        let after = (tenth * (0.75 + spread / 2.0)).ceil();
        let after = after.clamp(MIN_RETRY, MAX_RETRY);
        let opens = self.limits.opens.filter(|_| !self.is_open);
        let latest = opens.map_or(MAX_RETRY, |opens| {
            opens.since(now).as_secs_f64().ceil() + MIN_RETRY + spread * AFTER_OPENING
        });
        to_whole(after.min(latest.floor()))
    }

    /// Returns the answer to a visitor whose next poll is due at `due`.
    pub(super) fn waiting_until(&self, position: u64, due: Moment, now: Moment) -> WaitingVisitor {
        let seconds = due.since(now).as_secs_f64().ceil();
        WaitingVisitor {
            retry_after: to_whole(seconds.max(MIN_RETRY)),
            ..self.waiting_at(position, now)
        }
    }

    /// Returns the answer to the visitor at `position`, without `retry_after`.
    fn waiting_at(&self, position: u64, now: Moment) -> WaitingVisitor {
        let position = self.is_open.then(|| {
            // A visitor who was called meanwhile receives the call at the next poll.
            let rank = position.saturating_sub(self.called).max(1);
            let never_drawn = self.gaps.count_between(self.called, position);
            rank.saturating_sub(never_drawn).max(1)
        });
        let opens_in = self.limits.opens.map(|opens| opens.since(now));
        let wait = if let Some(position) = position {
            self.wait_at(position)
        } else {
            // The order is random then: the middle of the queue is the best prediction.
            let middle = self.wait_at(self.waiting() / 2 + 1);
            middle.zip(opens_in).map(|(wait, opens_in)| wait + opens_in)
        };
        WaitingVisitor {
            position,
            wait: wait.filter(|_| !self.limits.is_paused),
            retry_after: 0,
        }
    }

    /// Returns the predicted wait of a position, by the measured pace of calls.
    ///
    /// Calls of visitors who do not arrive are included, because their sessions are used for later
    /// calls.
    fn wait_at(&self, position: u64) -> Option<Duration> {
        let seconds = to_float(position) / self.pace.per_second();
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Returns the seconds until the predicted call or the opening, whichever is later.
    fn time_left(&self, waiting: &WaitingVisitor, now: Moment) -> f64 {
        let opens = self.limits.opens.map(|opens| opens.since(now));
        let wait = waiting.wait.map_or(f64::INFINITY, |it| it.as_secs_f64());
        wait.max(opens.unwrap_or_default().as_secs_f64())
    }
}
