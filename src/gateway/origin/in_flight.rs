//! Request at one server, from its departure until its response has ended.
//!
//! Reports the outcome to the server's health (`failures`), and to the gate by the *permit*: the
//! right to run one request at the origin. `in_flight_table` lists all requests at a server.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use config::ServerUrl;
use limit::{Cost, Moment, OriginTime};

use super::error::OriginError;
use super::failures::Failures;
use super::good_answers::Client;
use super::in_flight_table::{Entry, Phase, Sender};
use super::server::Server;
use crate::gate::{InvalidRetryAfter, Load, Permit};

/// Request at one server, counted until this is dropped.
pub struct InFlight<'o> {
    server: &'o Arc<Server>,
    /// Entry in the server's table; `None` while the request waits for the origin to come back.
    entry: Option<Entry<'o>>,
    failures: &'o Failures,
    /// `None`: the origin has no gate, or the permit was taken.
    permit: Option<Box<Permit>>,
    /// Client and route of the request.
    pub(super) sender: Sender,
    /// Instant at which the request left for the server.
    departed: Moment,
    /// Whether the head of a response has arrived, or need not arrive soon.
    has_begun: Cell<bool>,
    /// Last recorded phase, and its beginning. The table is written only if one of them changes.
    noted: Cell<(Phase, Moment)>,
}

impl<'o> InFlight<'o> {
    /// Creates the request of `sender`, which leaves for `server` `now`.
    pub(super) fn new(
        server: &'o Arc<Server>,
        failures: &'o Failures,
        sender: Sender,
        now: Moment,
    ) -> Self {
        Self {
            server,
            entry: Some(server.in_flight.enter(sender, now)),
            failures,
            permit: None,
            sender,
            departed: now,
            has_begun: Cell::new(false),
            noted: Cell::new((Phase::default(), now)),
        }
    }

    /// Gives the request its permit at the origin.
    pub fn set_permit(&mut self, permit: Option<Box<Permit>>) {
        self.permit = permit;
    }

    /// Moves the request to another server, where `other` has entered it.
    pub(super) fn move_to(&mut self, mut other: Self) {
        other.permit = self.permit.take();
        *self = other;
    }

    /// Returns whether the request may be sent now.
    ///
    /// False if the process was stopped until the lease of the request's permit had ended.
    pub fn may_start(&self) -> bool {
        self.permit.as_ref().is_none_or(|permit| permit.may_start())
    }

    /// Leaves the server, which the request did not reach. Returns its permit at the origin.
    pub fn leave(&mut self) -> Option<Box<Permit>> {
        self.entry = None;
        self.permit.take()
    }

    /// Returns the URL of the server that has the request.
    pub fn server(&self) -> &'o ServerUrl {
        self.server.url()
    }

    /// Returns the server that has the request.
    pub(crate) fn at_server(&self) -> &'o Arc<Server> {
        self.server
    }

    /// Reports to the gate how much of the time at the origin was the client's so far.
    ///
    /// The request is about to leave the table, so only [`Self::note_time`] writes it.
    pub fn note_time_at_gate(&self, time: OriginTime) {
        if let Some(permit) = &self.permit {
            permit.note_time(time);
        }
    }

    /// Reports to the gate how much of the time at the origin was the client's so far.
    ///
    /// Also records the request's phase in the table.
    pub fn note_time(&self, time: OriginTime) {
        self.note_time_at_gate(time);
        // A phase has the name of the event that the request waits for: the response, more of the
        // client's upload, the client that reads the response, or the response's end.
        let phase = match (self.has_begun.get(), time.is_stopped()) {
            (false, true) => Phase::Upload,
            (false, false) => Phase::Answer,
            (true, true) => Phase::Reader,
            (true, false) => Phase::End,
        };
        let since = match phase {
            // A piece of a slow upload does not restart the time.
            Phase::Upload => self.departed,
            _ => time.began(self.departed),
        };
        self.note(phase, since);
    }

    /// Records that a response has begun, or need not begin soon, as for a gRPC call.
    pub fn note_begun(&self) {
        self.has_begun.set(true);
        let (_, since) = self.noted.get();
        self.note(Phase::End, since);
    }

    /// Records the phase in the table, if it has changed.
    fn note(&self, phase: Phase, since: Moment) {
        if self.noted.replace((phase, since)) != (phase, since)
            && let Some(entry) = &self.entry
        {
            entry.note(phase, since);
        }
    }

    /// Records that the head of a response arrived `now`, after `took` of the origin's time.
    ///
    /// `retry_after` is called only if the gate needs it. `waited` returns how long the server had
    /// the whole request. It is called only if slow answers may count as failures.
    pub fn answered(
        &self,
        took: Duration,
        status: u16,
        retry_after: impl FnOnce() -> Result<Option<Duration>, InvalidRetryAfter>,
        waited: impl FnOnce() -> Duration,
        now: Moment,
    ) {
        if let Some(permit) = &self.permit {
            permit.answered(status, retry_after);
        }
        // Most responses are complete at this point, so the table is not written for this alone.
        self.has_begun.set(true);
        self.server.metrics.count_response(status, took);
        let client = Client::of(self.sender.client);
        match self.failures.reason(status, waited) {
            Some(reason) => (self.failures).count_bad_answer(self.server, client, &reason, now),
            None => self.server.note_good_answer(client, now),
        }
    }

    /// Records that the last byte of the response has arrived.
    pub fn ended(&self) {
        if let Some(permit) = &self.permit {
            permit.ended();
        }
    }

    /// Returns the load of the origin while the request was there.
    pub(crate) fn load(&self) -> Load {
        let permit = self.permit.as_ref();
        permit.map(|permit| permit.load()).unwrap_or_default()
    }

    /// Corrects the charge at the gate to the real cost of the request.
    pub fn settle(&self, cost: Cost) {
        if let Some(permit) = &self.permit {
            permit.settle(cost);
        }
    }

    /// Records that no response came, for all of `took` of the origin's time.
    ///
    /// After `max_fails` failures in a row the server is out for `fail_timeout`. From then on each
    /// further failure takes it out again, until it responds. A failure that the request itself may
    /// have caused does not count while the server answers other clients, or counts only once for
    /// its client.
    ///
    /// A lack of the gateway's own resources counts against no server and does not lower the gate's
    /// limits. `is_impatient`: the route's timeout for a response is shorter than the origin's.
    /// Then a timeout counts against no server either: other routes may give the server more time.
    pub fn failed(&self, error: &OriginError, took: Duration, now: Moment, is_impatient: bool) {
        if error.is_own() {
            return;
        }
        if let Some(permit) = &self.permit {
            permit.failed(error.outcome());
        }
        if is_impatient && matches!(error, OriginError::ResponseTimeout { .. }) {
            return;
        }
        let client = Client::of(self.sender.client);
        (self.failures).count_no_answer(self.server, client, error, took, now);
    }
}
