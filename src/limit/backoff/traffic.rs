use std::time::Duration;

use super::outstanding::Outstanding;
use super::window::{Closed, Window};
use crate::{Moment, OriginTime};

/// A request that was sent to the origin and has no answer yet.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "each request is answered or abandoned"]
pub struct Sent {
    pub(super) at: Moment,
    generation: u64,
    /// Among the outstanding ones, if `slow` was set.
    slot: u32,
    /// The key by which it shares the gate; `None`: no keys do.
    key: Option<u64>,
    /// Whether its client still has to send a part of it, so it is not outstanding.
    awaits_client: bool,
}

/// What came back for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it counts as trouble.
    pub trouble: bool,
    /// Its Retry-After.
    pub retry_after: Option<Duration>,
    /// What the gate charged for the request.
    pub cost: u32,
    /// How much of the time since it was sent was its client's.
    pub time: OriginTime,
}

/// What was sent to an origin and what came back, counted in windows.
#[derive(Debug)]
pub(super) struct Traffic {
    slow: Option<Duration>,
    window: Window,
    /// Grows with each cut: requests sent before the last one are not judged.
    generation: u64,
    /// The generation at the start. Requests of an earlier back-off have a smaller one.
    first_generation: u64,
    /// Those sent after the last cut, if `slow` is set.
    outstanding: Outstanding,
    /// All requests without an answer that the origin has as far as they have come.
    unanswered: u64,
    /// Other requests at the origin when the last one was sent.
    answering: u64,
}

impl Traffic {
    pub fn new(slow: Option<Duration>, now: Moment) -> Self {
        // Cuts are rarer than nanoseconds, so an earlier back-off has not come so far.
        let generation = now.as_nanos();
        Self {
            slow,
            window: Window::new(now),
            generation,
            first_generation: generation,
            outstanding: Outstanding::default(),
            unanswered: 0,
            answering: 0,
        }
    }

    /// Whether nothing is at the origin and nothing was counted.
    pub fn is_idle(&self) -> bool {
        self.unanswered == 0 && self.window.is_empty()
    }

    /// Whether nothing is at the origin, and no answer is counted to a request that was sent after the
    /// last cut: so none can be trouble.
    pub fn is_untroubled(&self) -> bool {
        self.unanswered == 0 && self.window.answers == 0
    }

    pub fn sent(&mut self, in_flight: usize, now: Moment) -> Sent {
        self.begin(now);
        let in_flight = u64::try_from(in_flight).unwrap_or(u64::MAX);
        self.answering = in_flight.saturating_sub(self.unanswered);
        let slot = self.slow.map(|_| self.outstanding.add(now, None));
        Sent {
            at: now,
            generation: self.generation,
            slot: slot.unwrap_or_default(),
            key: None,
            awaits_client: false,
        }
    }

    /// Names the key by which the request shares the gate.
    pub fn set_key(&mut self, sent: &mut Sent, key: u64) {
        sent.key = Some(key);
        if self.is_outstanding(sent) {
            self.outstanding.set_key(sent.slot, key);
        }
    }

    /// Returns the generation of the request, if it has ended, and how long the answer took.
    pub fn answered(
        &mut self,
        sent: &Sent,
        answer: &Answer,
        now: Moment,
    ) -> Option<(u64, Duration)> {
        if self.is_foreign(sent) {
            return None;
        }
        let took = answer.time.since(sent.at, now);
        if !answer.trouble {
            self.window.complete(answer);
        }
        let is_present = sent.generation == self.generation;
        if is_present {
            self.window.add(sent.key, answer, took, self.slow);
        }
        self.forget(sent);
        (!is_present).then_some((sent.generation, took))
    }

    /// The request is not outstanding while its client still has to send a part of it.
    pub fn await_client(&mut self, sent: &mut Sent) {
        self.forget(sent);
        sent.awaits_client = true;
    }

    /// The request is outstanding again: the origin has all that has come of it.
    pub fn resume(&mut self, sent: &mut Sent, now: Moment) {
        if !std::mem::take(&mut sent.awaits_client) || self.is_foreign(sent) {
            return;
        }
        self.begin(now);
        if self.slow.is_some() && sent.generation == self.generation {
            sent.slot = self.outstanding.add(now, sent.key);
        }
    }

    /// One more request has no answer.
    fn begin(&mut self, now: Moment) {
        if self.is_idle() {
            // Time in which nothing could be answered does not count.
            self.window.since = now;
        }
        self.unanswered += 1;
    }

    /// The request is outstanding no more.
    pub fn forget(&mut self, sent: &Sent) {
        if self.is_foreign(sent) || sent.awaits_client {
            return;
        }
        self.unanswered = self.unanswered.saturating_sub(1);
        if self.is_outstanding(sent) {
            self.outstanding.remove(sent.slot);
        }
    }

    /// Whether the request has a slot among the outstanding ones.
    fn is_outstanding(&self, sent: &Sent) -> bool {
        let is_present = sent.generation == self.generation;
        self.slow.is_some() && is_present && !sent.awaits_client
    }

    /// Whether the request left under an earlier back-off, which the file has ended since.
    ///
    /// Its slot may be that of another request here.
    fn is_foreign(&self, sent: &Sent) -> bool {
        sent.generation < self.first_generation
    }

    /// Closes the window and opens another one, if it is time.
    pub fn close(&mut self, now: Moment) -> Option<Closed> {
        let overdue = self.slow.map(|slow| self.outstanding.overdue(slow, now));
        let overdue = overdue.unwrap_or_default();
        if !self.window.is_over(overdue, now) {
            return None;
        }
        let mut window = std::mem::replace(&mut self.window, Window::new(now));
        if self.slow.is_some() {
            let keys = self.outstanding.overdue_keys();
            keys.for_each(|key| window.by_key.of(key).overdue += 1);
        }
        Some(Closed {
            window,
            at: now,
            overdue,
            unanswered: self.unanswered,
            answering: self.answering,
            generation: self.generation,
        })
    }

    /// The present generation, and how many requests have no answer.
    pub fn at_origin(&self) -> (u64, u64) {
        (self.generation, self.unanswered)
    }

    /// Judges only what is sent from now on.
    pub fn begin_generation(&mut self, slow: Option<Duration>, now: Moment) {
        self.slow = slow;
        self.generation += 1;
        self.outstanding.clear();
        self.window = Window::new(now);
    }
}
