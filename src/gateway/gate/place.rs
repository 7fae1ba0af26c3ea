use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use limit::{Cost, Moment, OriginTime, Sent, Share};

use super::line::Line;
use super::observer::PlaceEnd;
use super::{GateRejection, KeyAtGate, OriginGate, Waiting};
use crate::observe::metrics::Outcome;
use crate::time::clock;

/// A place at the origin, taken until this is dropped.
pub struct Place {
    gate: Arc<OriginGate>,
    /// The number of its departure.
    pub(super) number: u64,
    /// What the request counts for.
    pub(super) cost: u32,
    /// Whether it was given back before this is dropped.
    pub(super) is_given_back: bool,
    /// Whether the last byte of the answer has arrived.
    is_whole: Cell<bool>,
    /// Whether the origin had little to do when the request left.
    was_quiet: bool,
    /// The request as the back-off knows it, until its result is reported.
    sent: Cell<Option<Sent>>,
    /// How much of its time at the origin was its client's.
    time: Cell<OriginTime>,
    /// How the last attempt failed. It is the result unless another server answers.
    failure: Cell<Option<Outcome>>,
}

/// What is noted of a request as it leaves.
pub(super) struct Left {
    /// The request as the back-off knows it.
    pub(super) sent: Option<Sent>,
    /// Whether the origin has [little to do](limit::Gate::is_quiet).
    pub(super) is_quiet: bool,
}

/// What the origin had to do while a request was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Whether fewer than half of the places were taken, when it left and now.
    pub(crate) is_quiet: bool,
    /// Whether the back-off has lowered what the gate lets through.
    pub(crate) is_lowered: bool,
}

/// What a request has come to, for the back-off.
pub(super) struct Unreported {
    pub(super) sent: Sent,
    pub(super) time: OriginTime,
    pub(super) cost: u32,
    pub(super) result: Option<OriginResult>,
}

/// A `Retry-After` that is neither a delay nor a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRetryAfter;

/// What an origin did with a request; if nothing, its client left.
#[derive(Clone, Copy, Debug)]
pub(super) enum OriginResult {
    Answered {
        status: u16,
        retry_after: Option<Duration>,
    },
    Failed(Outcome),
}

impl Place {
    pub(super) fn new(gate: &Arc<OriginGate>, number: u64, cost: u32, left: Left) -> Self {
        Self {
            gate: Arc::clone(gate),
            number,
            cost,
            is_given_back: false,
            is_whole: Cell::new(false),
            was_quiet: left.is_quiet,
            sent: Cell::new(left.sent),
            time: Cell::new(OriginTime::NEW),
            failure: Cell::new(None),
        }
    }

    /// The line of the request, for another one that takes over from it.
    pub fn line(&self) -> Line {
        Line::new(&self.gate, self.number, self.cost)
    }

    /// Whether its request may still be sent: the gateway may have stood still for too long.
    pub fn may_start(&self) -> bool {
        self.gate.may_start()
    }

    /// Names the key by which the request shares the gate. It is asked only if the back-off counts by key.
    pub(crate) fn tell_key(&self, key: impl FnOnce() -> u64) {
        if let Some(mut sent) = self.sent.take() {
            let key = key();
            (self.gate).with_backoff(|backoff| backoff.set_key(&mut sent, key));
            self.sent.set(Some(sent));
        }
    }

    /// Reports that the head of an answer has arrived.
    ///
    /// `retry_after` is called only if the gate backs off.
    pub(crate) fn answered(
        &self,
        status: u16,
        retry_after: impl FnOnce() -> Result<Option<Duration>, InvalidRetryAfter>,
    ) {
        self.failure.set(None);
        if self.gate.is_observed() {
            self.gate.observe_head(self.number, status, self.time.get());
        }
        if let Some(sent) = self.sent.take() {
            let retry_after = retry_after().unwrap_or_else(|_invalid| {
                self.gate.metrics().invalid_retry_afters.add(1);
                None
            });
            let result = OriginResult::Answered {
                status,
                retry_after,
            };
            self.gate.report(Unreported {
                sent,
                time: self.time.get(),
                cost: self.cost,
                result: Some(result),
            });
        }
    }

    /// Notes how much of the time at the origin was the client's so far.
    pub(crate) fn note_time(&self, time: OriginTime) {
        let before = self.time.replace(time);
        if before.is_stopped() == time.is_stopped() {
            return;
        }
        if self.gate.is_observed() {
            self.gate.observe_client(self.number, time.is_stopped());
        }
        if let Some(mut sent) = self.sent.take() {
            let awaits = time.is_stopped();
            (self.gate)
                .with_backoff(|backoff| backoff.await_client(&mut sent, awaits, clock::now()));
            self.sent.set(Some(sent));
        }
    }

    /// Reports that the last byte of the answer has arrived.
    pub(crate) fn ended(&self) {
        self.is_whole.set(true);
    }

    /// What the origin had to do while the request was there.
    pub(crate) fn load(&self) -> Load {
        let now = self.gate.lock().load(clock::now());
        Load {
            is_quiet: self.was_quiet && now.is_quiet,
            ..now
        }
    }

    /// Changes what the request was charged to what it turned out to cost.
    pub(crate) fn settle(&self, cost: Cost) {
        self.gate.settle(self.cost, cost.get());
    }

    /// Notes that a server gave no answer. Another one may still be asked.
    pub(crate) fn failed(&self, outcome: Outcome) {
        self.failure.set(Some(outcome));
    }

    /// Lets a request that could not be sent wait again, ahead of the queue.
    ///
    /// `key`: its key at the gate. `held_since`: when it first could not be sent.
    ///
    /// # Errors
    ///
    /// Returns an error if the gateway stops, or as many of them wait as may wait at the gate.
    pub(crate) fn put_back(
        mut self,
        key: KeyAtGate,
        held_since: Moment,
    ) -> Result<Waiting, GateRejection> {
        let gate = Arc::clone(&self.gate);
        let (position, turn, alarms) = gate.put_back(&mut self, key.clone())?;
        Ok(Waiting {
            gate,
            share: Share::of(key),
            position,
            turn,
            since: clock::now(),
            held_since: Some(held_since),
            alarms,
            has_left: false,
        })
    }

    /// How it ended, when this is dropped.
    fn end(&self) -> PlaceEnd {
        let failure = self.failure.take();
        self.failure.set(failure);
        if self.is_whole.get() {
            PlaceEnd::Whole
        } else if failure.is_some() {
            PlaceEnd::Failed
        } else {
            PlaceEnd::Abandoned
        }
    }

    pub(super) fn take_unreported(&self) -> Option<Unreported> {
        let result = self.failure.take().map(OriginResult::Failed);
        let (sent, cost) = (self.sent.take()?, self.cost);
        Some(Unreported {
            sent,
            time: self.time.get(),
            cost,
            result,
        })
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_given_back {
            if self.gate.is_observed() {
                self.gate
                    .observe_end(self.number, self.end(), self.time.get());
            }
            self.gate.give_back(self.take_unreported());
        }
    }
}
