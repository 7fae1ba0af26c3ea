//! Permit of one request at the origin: the right to run there, until the request has ended.
//!
//! It also reports the result of the request to the gate's back-off (`backing_off`), and to the
//! observer of an experiment (`observer`). If several gateways share the permits of the origin,
//! `shared_permits` leases them from a pool.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use limit::{Backoff, Cost, Moment, OriginTime, Sent, Share};

use super::departed::DepartedRequest;
use super::observer::RequestEnd;
use super::{GateRejection, KeyAtGate, OriginGate, Waiting};
use crate::observe::metrics::Outcome;
use crate::time::clock;

/// Permit for one request at the origin. Dropping it gives the permit back.
pub struct Permit {
    gate: Arc<OriginGate>,
    /// Number of the departure.
    pub(super) number: u64,
    /// Cost of the request.
    pub(super) cost: u32,
    /// Whether the permit was given back. Then dropping this does nothing.
    pub(super) is_given_back: bool,
    /// Whether the last byte of the response has arrived.
    is_whole: Cell<bool>,
    /// Whether the origin was [quiet](limit::Gate::is_quiet) when the request departed.
    was_quiet: bool,
    /// Record of the request in the back-off. Taken when its result is reported.
    sent: Cell<Option<Sent>>,
    /// Clock of the request's time at the origin, which leaves out the time of its client.
    time: Cell<OriginTime>,
    /// Failure of the last attempt. It is the result unless another server answers.
    failure: Cell<Option<Outcome>>,
}

/// Facts recorded as a request departs.
pub(super) struct DepartureRecord {
    /// Record of the request in the back-off, if the gate has one.
    pub(super) sent: Option<Sent>,
    /// Whether the origin is [quiet](limit::Gate::is_quiet).
    pub(super) is_quiet: bool,
}

/// Load of the origin while a request was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Whether fewer than half of the permits were in use, both at the departure and now.
    pub(crate) is_quiet: bool,
    /// Whether the back-off has lowered the gate's limits.
    pub(crate) is_lowered: bool,
}

/// Result of a request, to be reported to the back-off.
pub(super) struct Unreported {
    pub(super) sent: Sent,
    pub(super) time: OriginTime,
    pub(super) cost: u32,
    /// `None`: the client disconnected before an answer.
    pub(super) result: Option<OriginResult>,
}

/// Error: a `Retry-After` that is neither a delay nor a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRetryAfter;

/// Result of a request at an origin.
#[derive(Clone, Copy, Debug)]
pub(super) enum OriginResult {
    /// The head of a response arrived.
    Answered {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// No server gave a response.
    Failed(Outcome),
}

impl Permit {
    pub(super) fn new(
        gate: &Arc<OriginGate>,
        number: u64,
        cost: u32,
        departure: DepartureRecord,
    ) -> Self {
        Self {
            gate: Arc::clone(gate),
            number,
            cost,
            is_given_back: false,
            is_whole: Cell::new(false),
            was_quiet: departure.is_quiet,
            sent: Cell::new(departure.sent),
            time: Cell::new(OriginTime::NEW),
            failure: Cell::new(None),
        }
    }

    /// Returns the departure of the request, from which another request can take over.
    pub fn departed(&self) -> DepartedRequest {
        DepartedRequest {
            gate: Arc::clone(&self.gate),
            number: self.number,
            cost: self.cost,
        }
    }

    /// Returns whether the request may still be sent.
    ///
    /// False if the gateway stood still until the lease of the permit had ended.
    pub fn may_start(&self) -> bool {
        self.gate.may_start()
    }

    /// Reports the hash of the request's key. `key` is called only if the gate has a back-off.
    pub(crate) fn report_key(&self, key: impl FnOnce() -> u64) {
        if let Some(mut sent) = self.sent.take() {
            let key = key();
            (self.gate).with_backoff(|backoff| backoff.set_key(&mut sent, key));
            self.sent.set(Some(sent));
        }
    }

    /// Reports that the head of a response has arrived.
    ///
    /// `retry_after` is called only if the gate has a back-off.
    pub(crate) fn answered(
        &self,
        status: u16,
        retry_after: impl FnOnce() -> Result<Option<Duration>, InvalidRetryAfter>,
    ) {
        self.failure.set(None);
        if self.gate.is_observed() {
            (self.gate).observe(|it, now| it.note_head(self.number, status, self.time.get(), now));
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
            self.gate.report(self.unreported(sent, Some(result)));
        }
    }

    /// Records how much of the time at the origin was the client's so far.
    pub(crate) fn note_time(&self, time: OriginTime) {
        let before = self.time.replace(time);
        // The origin's clock is stopped while the client has to send or read more.
        let awaits = time.is_stopped();
        if before.is_stopped() == awaits {
            return;
        }
        if self.gate.is_observed() {
            (self.gate).observe(|it, now| it.await_client(self.number, awaits, now));
        }
        if let Some(mut sent) = self.sent.take() {
            let await_client = |it: &mut Backoff| it.await_client(&mut sent, awaits, clock::now());
            self.gate.with_backoff(await_client);
            self.sent.set(Some(sent));
        }
    }

    /// Reports that the last byte of the response has arrived.
    pub(crate) fn ended(&self) {
        self.is_whole.set(true);
    }

    /// Returns the load of the origin while the request was there.
    pub(crate) fn load(&self) -> Load {
        let now = self.gate.lock().load(clock::now());
        Load {
            is_quiet: self.was_quiet && now.is_quiet,
            ..now
        }
    }

    /// Corrects the charge of the request to its real cost.
    pub(crate) fn settle(&self, cost: Cost) {
        self.gate.settle(self.cost, cost.get());
    }

    /// Records that a server did not answer. Another server may still be tried.
    pub(crate) fn failed(&self, outcome: Outcome) {
        self.failure.set(Some(outcome));
    }

    /// Puts a request that could not be sent back at the head of the queue.
    ///
    /// `key`: key of the request at the gate. `held_since`: instant at which the request first
    /// could not be sent.
    ///
    /// # Errors
    ///
    /// Returns an error if the gateway stops, or if the queue of the gate is full.
    pub(crate) fn put_back(
        mut self,
        key: KeyAtGate,
        held_since: Moment,
    ) -> Result<Waiting, GateRejection> {
        let gate = Arc::clone(&self.gate);
        let seat = gate.put_back(&mut self, key.clone())?;
        let (share, held_since) = (Share::of(key), Some(held_since));
        Ok(Waiting::new(&gate, share, seat, clock::now(), held_since))
    }

    /// Returns how the request ended. Called when this is dropped.
    fn end(&self) -> RequestEnd {
        if self.is_whole.get() {
            RequestEnd::Whole
        } else if self.failure.get().is_some() {
            RequestEnd::Failed
        } else {
            RequestEnd::Abandoned
        }
    }

    /// Takes the result for the back-off; `None` if it was reported before, or is not needed.
    pub(super) fn take_unreported(&self) -> Option<Unreported> {
        let result = self.failure.take().map(OriginResult::Failed);
        Some(self.unreported(self.sent.take()?, result))
    }

    /// Returns this result of the request, for the back-off.
    fn unreported(&self, sent: Sent, result: Option<OriginResult>) -> Unreported {
        Unreported {
            sent,
            time: self.time.get(),
            cost: self.cost,
            result,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_given_back {
            if self.gate.is_observed() {
                let (end, time) = (self.end(), self.time.get());
                (self.gate).observe(|it, now| it.note_end(self.number, end, time, now));
            }
            self.gate.give_back(self.take_unreported());
        }
    }
}
