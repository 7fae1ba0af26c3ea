use std::time::Duration;

use super::WaitingRoom;
use crate::{Moment, to_float, to_whole};

/// Bounds of `Retry-After`, in seconds.
const MIN_RETRY: f64 = 2.0;
const MAX_RETRY: f64 = MAX_RETRY_AFTER.as_secs_f64();
/// No visitor is told to ask again later than after this time.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Over how many seconds after the opening those are spread who came before it.
const AFTER_OPENING: f64 = 8.0;

/// What a visitor who waits is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// The place in line, from 1; `None` before the room opens.
    pub position: Option<u64>,
    /// How long the wait will be; `None` if nobody is called for now, or nothing is known.
    pub wait: Option<Duration>,
    /// Seconds after which to ask again.
    pub retry_after: u64,
}

impl WaitingRoom {
    /// What a visitor is told, which is remembered.
    pub(super) fn tell(&mut self, number: u64, now: Moment) -> Waiting {
        let place = self.place(number);
        let mut waiting = self.waiting_at(place, now);
        waiting.retry_after = self.retry_after(&waiting, number, now);
        let due = now + Duration::from_secs(waiting.retry_after);
        let mut polls = std::mem::take(&mut self.polls);
        polls.tell(number, due, |other| {
            let other = self.place(other);
            other <= self.called || other > place
        });
        self.polls = polls;
        waiting
    }

    /// What a visitor is told who is the `nth` behind all who wait, and has no place yet.
    pub(super) fn behind(&self, nth: u64, number: u64, now: Moment) -> Waiting {
        let mut waiting = self.waiting_at(self.called + self.waiting() + nth, now);
        waiting.retry_after = self.retry_after(&waiting, number, now);
        waiting
    }

    /// A tenth of the time that is left, spread by the number so that not all ask at once; and not
    /// long after the room opens, because nobody knows before who is the first.
    fn retry_after(&self, waiting: &Waiting, number: u64, now: Moment) -> u64 {
        let spread = spread(number);
        let tenth = (self.time_left(waiting, now) / 10.0).clamp(MIN_RETRY, MAX_RETRY);
        let after = (tenth * (0.75 + spread / 2.0))
            .ceil()
            .clamp(MIN_RETRY, MAX_RETRY);
        let opens = self.limits.opens.filter(|_| !self.is_open);
        let most = opens.map_or(MAX_RETRY, |opens| {
            opens.since(now).as_secs_f64().ceil() + MIN_RETRY + spread * AFTER_OPENING
        });
        to_whole(after.min(most.floor()))
    }

    /// What a visitor is told who was told before to ask again at `due`.
    pub(super) fn waiting_until(&self, place: u64, due: Moment, now: Moment) -> Waiting {
        let left = due.since(now).as_secs_f64().ceil();
        Waiting {
            retry_after: to_whole(left.max(MIN_RETRY)),
            ..self.waiting_at(place, now)
        }
    }

    fn waiting_at(&self, place: u64, now: Moment) -> Waiting {
        let position = self.is_open.then(|| {
            // One that was called meanwhile is told so when it asks again.
            let before = place.saturating_sub(self.called).max(1);
            before - self.gaps.ahead(self.called, place).min(before - 1)
        });
        let opens_in = self.limits.opens.map(|opens| opens.since(now));
        let wait = match position {
            Some(position) => self.wait_of(position),
            // In the middle, as far as anyone can tell.
            None => self
                .wait_of(self.waiting() / 2 + 1)
                .zip(opens_in)
                .map(|(wait, it)| wait + it),
        };
        Waiting {
            position,
            wait: wait.filter(|_| !self.limits.is_paused),
            retry_after: 0,
        }
    }

    /// How long a place in line waits, by the measured pace of calls.
    ///
    /// Calls to those who do not come are in it: their places are called again.
    fn wait_of(&self, position: u64) -> Option<Duration> {
        let seconds = to_float(position) / self.pace.per_second();
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn time_left(&self, waiting: &Waiting, now: Moment) -> f64 {
        let opens = self.limits.opens.map(|opens| opens.since(now));
        let wait = waiting.wait.map_or(f64::INFINITY, |it| it.as_secs_f64());
        wait.max(opens.unwrap_or_default().as_secs_f64())
    }
}

/// From 0 to 1: far apart for numbers that follow each other, by the golden ratio.
fn spread(number: u64) -> f64 {
    to_float(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) / 65_536.0
}
