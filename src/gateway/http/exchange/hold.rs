//! Hold: requests that could not be sent, or were lost, wait until the origin can be reached.
//!
//! They wait at the gate of the origin (its limit for all requests), before the requests that have
//! not passed it yet. A *permit* is the right to run at the origin. A server is *full* if it runs
//! as many requests as it may.

use std::io;
use std::pin::pin;
use std::time::Duration;

use limit::Moment;
use tokio::time::sleep;

use super::destination::Destination;
use super::failure::Failure;
use super::forward::Forward;
use super::gate::GateRequest;
use crate::gate::{Permit, WaitError};
use crate::http::downstream::unless_disconnected;
use crate::origin::{Connection, InFlight, OriginError};

/// Time between two attempts of a request while all servers are full.
const FULL_PAUSE: Duration = Duration::from_millis(5);

impl<'r> Forward<'_, 'r> {
    /// Returns whether the origin has `hold`, and the request has not waited for all of it.
    pub(super) fn has_hold_left(&self) -> bool {
        let hold = self.settings().hold;
        let is_over = |since| self.record.now() >= since + hold;
        self.settings().holds() && !self.held_since.is_some_and(is_over)
    }

    /// Records that the request was lost with its connection, and picks the next server.
    ///
    /// Another server is preferred.
    pub(super) fn record_lost(&mut self, in_flight: &mut InFlight<'r>, source: &io::Error) {
        let error = OriginError::Broken {
            server: in_flight.server().to_string(),
            source: source.kind().into(),
        };
        // The failure counts against the server. `false`: the servers are not full.
        let _counted = self.record_failure(in_flight, Failure::Origin(error));
        self.note_held(false);
        // If no other server is available, the same one is used again.
        let (origin, now) = (self.origin(), self.record.now());
        let _ = origin.move_to_untried(&[in_flight.server()], in_flight, now, || self.hash());
    }

    /// Notes that the request is held from now on. Returns the instant from which it is held.
    ///
    /// Only the first call sets that instant. The time that the request waited for the answer of
    /// another one (as a follower) counts as held, unless `is_full`: all servers are full.
    pub(super) fn note_held(&mut self, is_full: bool) -> Moment {
        let followed = Some(self.record.time_as_follower()).filter(|_| !is_full);
        let start = || self.record.now().before(followed.unwrap_or_default());
        *self.held_since.get_or_insert_with(start)
    }

    /// Opens a connection when the origin can be reached again. All servers have failed before.
    ///
    /// `error`: the last failure. Returns it if the request does not wait: without `hold`, or if
    /// the gateway itself caused the error. If all remaining servers are only full, it waits in any
    /// case.
    pub(super) async fn connect_later(
        &mut self,
        in_flight: &mut InFlight<'r>,
        error: OriginError,
    ) -> Result<Connection, Failure> {
        let waits = self.settings().holds() && !error.is_own();
        if !waits && !error.is_full() {
            return Err(Failure::Origin(error));
        }
        let held_since = self.note_held(error.is_full());
        let permit = in_flight.leave();
        let (connection, found) = self.connect_when_back(permit, error, held_since).await?;
        *in_flight = found;
        Ok(connection)
    }

    /// Waits until the origin can be reached, and then opens a connection.
    ///
    /// Meanwhile the request waits at the origin's gate, before the requests that have not departed
    /// yet. It does not wait if its client can get a stale answer at once. `held_since`: instant at
    /// which the request first could not be sent.
    pub(super) async fn connect_when_back(
        &mut self,
        permit: Option<Box<Permit>>,
        error: OriginError,
        held_since: Moment,
    ) -> Result<(Connection, InFlight<'r>), Failure> {
        if self.settings().holds() && error.is_unreachable() && self.client.report_held() {
            return Err(Failure::Origin(error));
        }
        let (mut permit, mut error) = (permit, error);
        loop {
            let new_permit = self.wait_again(permit, error, held_since).await?;
            self.permit = Some(Box::new(new_permit));
            self.began = self.record.now();
            let mut in_flight = match self.pick() {
                Ok(in_flight) => in_flight,
                Err(none_available) => {
                    (permit, error) = (self.permit.take(), none_available);
                    continue;
                }
            };
            match self.connect_to_any(&mut in_flight).await {
                Ok(connection) => {
                    self.sent_at = self.record.now();
                    self.record.server = Some(in_flight.server());
                    self.client.report_resumed();
                    return Ok((connection, in_flight));
                }
                Err(Failure::Origin(failed)) => (permit, error) = (in_flight.leave(), failed),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Opens a connection to a server that was not tried yet, backups last.
    ///
    /// If none can be reached, returns the last failure. `failure`: failure of the first server.
    pub(super) async fn connect_to_others(
        &mut self,
        in_flight: &mut InFlight<'r>,
        failure: Failure,
    ) -> Result<Connection, Failure> {
        let origin = self.origin();
        let (mut tried, mut last) = (vec![in_flight.server()], failure);
        loop {
            match origin.move_to_untried(&tried, in_flight, self.record.now(), || self.hash()) {
                Ok(()) => {}
                // The request waits until one of the full servers is free.
                Err(full) if full.is_full() => return Err(Failure::Origin(full)),
                Err(_) => return Err(last),
            }
            tried.push(in_flight.server());
            match self.connect_to(in_flight).await? {
                Ok(connection) => return Ok(connection),
                Err(error) if error.is_own() => return Err(Failure::Origin(error)),
                Err(error) => last = self.record_failure(in_flight, Failure::Origin(error)),
            }
            if self.settings().holds() {
                // The time for trying the other servers is a part of `hold`. `false`: they are not
                // full.
                self.note_held(false);
            }
        }
    }

    /// Returns the request to the gate, and waits there for a new permit.
    async fn wait_again(
        &mut self,
        permit: Option<Box<Permit>>,
        error: OriginError,
        held_since: Moment,
    ) -> Result<Permit, Failure> {
        if error.is_full() {
            // The gate learns that a server is full a little later than the request.
            sleep(FULL_PAUSE).await;
        }
        let (route, origin) = (self.route, self.origin);
        let gate = GateRequest::new(self.record, Destination { route, origin });
        let (Some(gate), Some(permit)) = (gate, permit) else {
            return Err(Failure::Origin(error));
        };
        let may_wait = self.origin().check_hold(error, held_since);
        may_wait.map_err(Failure::Origin)?;
        let waiting = permit.put_back(gate.key(), held_since);
        let (began, at_gate) = (self.record.began, &mut self.record.at_gate);
        let worker = self.record.worker;
        let passing = pin!(gate.pass_again(worker, waiting, began, at_gate));
        let passed = unless_disconnected(self.client, passing).await?;
        passed.map_err(|why| match why {
            WaitError::Outage(error) => {
                self.began = worker.pacer.now();
                Failure::Origin(error)
            }
            WaitError::Rejected(rejection) => Failure::Rejected(rejection),
        })
    }
}
