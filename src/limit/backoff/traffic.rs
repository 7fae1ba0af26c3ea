//! Traffic: counts the requests sent to an origin and its answers, in windows of time.
//!
//! A *cut* lowers a limit of the back-off. A *generation* is the group of requests sent between two
//! cuts: only answers to the current one are judged. `slow` is the configured time from which an
//! answer is slow. *Outstanding* requests have no answer yet. *Trouble* is an answer that counts as
//! a failure.

use std::time::Duration;

use super::outstanding::Outstanding;
use super::window::{Closed, Window};
use crate::{Moment, OriginTime};

/// A request that was sent to the origin and has no answer yet.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "each request is answered or abandoned"]
pub struct Sent {
    /// Instant at which it was sent.
    pub(super) at: Moment,
    generation: u64,
    /// Slot in [`Outstanding`], if `slow` is configured.
    slot: u32,
    /// Hash of the key by which the request shares the gate. `None`: no keys share the gate.
    key: Option<u64>,
    /// Whether the client still has to send a part of the request. It is not outstanding then.
    awaits_client: bool,
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it counts as trouble.
    pub trouble: bool,
    /// Its Retry-After, if it has one.
    pub retry_after: Option<Duration>,
    /// Charge of the request at the gate.
    pub cost: u32,
    /// Time that counts as the origin's: without the time in which the client had to send.
    pub time: OriginTime,
}

/// Requests sent to an origin and its answers, counted in windows.
#[derive(Debug)]
pub(super) struct Traffic {
    /// Threshold of a slow answer. `None`: not configured.
    slow: Option<Duration>,
    window: Window,
    /// Number of the current generation: grows with each cut.
    ///
    /// Requests of an earlier generation are not judged.
    pub generation: u64,
    /// First generation of this back-off. Requests of an earlier back-off have a smaller one.
    first_generation: u64,
    /// Requests sent after the last cut and not answered, if `slow` is configured.
    outstanding: Outstanding,
    /// Number of requests without an answer.
    ///
    /// A request does not count while its client has to send a part of it.
    pub unanswered: u64,
    /// Number of requests at the origin beside `unanswered`, when the last request was sent.
    ///
    /// Their answer has begun, or their client has to send a part of them.
    answering: u64,
}

impl Traffic {
    pub fn new(slow: Option<Duration>, now: Moment) -> Self {
        // An earlier back-off made fewer cuts than nanoseconds have passed, so its numbers are
        // smaller.
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

    /// Returns whether no request is at the origin and no answer was counted.
    pub fn is_idle(&self) -> bool {
        self.unanswered == 0 && self.window.is_empty()
    }

    /// Returns whether no request sent after the last cut can be in trouble.
    ///
    /// No request is at the origin then, and no answer is counted.
    pub fn is_untroubled(&self) -> bool {
        self.unanswered == 0 && self.window.answers == 0
    }

    /// Records a request sent to the origin.
    ///
    /// `in_flight` requests are there now, including this one.
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

    /// Sets the key by which the request shares the gate.
    pub fn set_key(&mut self, sent: &mut Sent, key: u64) {
        sent.key = Some(key);
        if self.is_outstanding(sent) {
            self.outstanding.set_key(sent.slot, key);
        }
    }

    /// Records an answer.
    ///
    /// Returns the generation and the duration of the answer, if the request is of an earlier
    /// generation.
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
        let is_current = sent.generation == self.generation;
        if is_current {
            self.window.add(sent.key, answer, took, self.slow);
        }
        self.forget(sent);
        (!is_current).then_some((sent.generation, took))
    }

    /// Removes the request from the outstanding ones while the origin waits for its client.
    pub fn await_client(&mut self, sent: &mut Sent) {
        self.forget(sent);
        sent.awaits_client = true;
    }

    /// Adds the request to the outstanding ones again: the client has sent what the origin needs.
    pub fn resume(&mut self, sent: &mut Sent, now: Moment) {
        if !std::mem::take(&mut sent.awaits_client) || self.is_foreign(sent) {
            return;
        }
        self.begin(now);
        if self.slow.is_some() && sent.generation == self.generation {
            sent.slot = self.outstanding.add(now, sent.key);
        }
    }

    /// Counts one more request without an answer. Starts the window if nothing was counted before.
    fn begin(&mut self, now: Moment) {
        if self.is_idle() {
            // Time without a request at the origin does not count.
            self.window.since = now;
        }
        self.unanswered += 1;
    }

    /// Removes the request from the outstanding ones.
    pub fn forget(&mut self, sent: &Sent) {
        if self.is_foreign(sent) || sent.awaits_client {
            return;
        }
        self.unanswered = self.unanswered.saturating_sub(1);
        if self.is_outstanding(sent) {
            self.outstanding.remove(sent.slot);
        }
    }

    /// Returns whether the request has a slot among the outstanding ones.
    fn is_outstanding(&self, sent: &Sent) -> bool {
        let is_current = sent.generation == self.generation;
        self.slow.is_some() && is_current && !sent.awaits_client
    }

    /// Returns whether the request was sent under an earlier back-off, which a reload has ended.
    ///
    /// Its slot may belong to another request here.
    fn is_foreign(&self, sent: &Sent) -> bool {
        sent.generation < self.first_generation
    }

    /// Closes the window and opens another one, if the window is over.
    pub fn close(&mut self, now: Moment) -> Option<Closed> {
        let overdue = self.slow.map(|slow| self.outstanding.overdue(slow, now));
        let overdue = overdue.unwrap_or_default();
        if !self.window.is_over(overdue, now) {
            return None;
        }
        let mut window = std::mem::replace(&mut self.window, Window::new(now));
        if self.slow.is_some() {
            let keys = self.outstanding.overdue_keys();
            keys.for_each(|key| window.by_key.counts(key).overdue += 1);
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

    /// Starts a generation: only requests sent from now on are judged.
    pub fn begin_generation(&mut self, slow: Option<Duration>, now: Moment) {
        self.slow = slow;
        self.generation += 1;
        self.outstanding.clear();
        self.window = Window::new(now);
    }
}
