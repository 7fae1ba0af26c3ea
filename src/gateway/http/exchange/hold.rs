//! Requests that could not be sent, because the origin cannot be reached, or that were lost with it.

use std::io;
use std::pin::pin;
use std::time::Duration;

use limit::Moment;
use tokio::time::sleep;

use super::failure::Failure;
use super::forward::Forward;
use super::gate::GateRequest;
use super::onward::Destination;
use crate::gate::{NoTurn, Place};
use crate::http::downstream::unless_gone;
use crate::origin::{Connection, InFlight, OriginError};

/// Time between two tries of a request for which all servers are full.
const FULL_PAUSE: Duration = Duration::from_millis(5);

impl<'r> Forward<'_, 'r> {
    /// Returns whether a request whose connection ended may be sent once more.
    ///
    /// Not if it has waited for all of `hold` already.
    pub(super) fn may_resend(&self) -> bool {
        let hold = self.settings().hold;
        let is_over = |since| self.record.now() >= since + hold;
        self.settings().holds() && !self.held_since.is_some_and(is_over)
    }

    /// Notes that the request was lost with its connection, and is sent again.
    ///
    /// It goes to another server if there is one.
    pub(super) fn lost(&mut self, in_flight: &mut InFlight<'r>, source: &io::Error) {
        let error = OriginError::Broken {
            server: in_flight.server().to_string(),
            source: source.kind().into(),
        };
        let _counted = self.failed(in_flight, Failure::Origin(error));
        self.held_since(false);
        // If no other is in, the same one is asked again.
        let (tried, now) = ([in_flight.server()], self.record.now());
        let _ = self
            .origin()
            .untried(&tried, in_flight, now, || self.hash());
    }

    /// When the request first could not be sent or was lost: now, unless it was before.
    ///
    /// The time in which it followed another one is a part of `hold`. `is_full`: not if all servers
    /// are full, for which it waits no longer than in the queue.
    pub(super) fn held_since(&mut self, is_full: bool) -> Moment {
        let followed = if is_full {
            Duration::ZERO
        } else {
            self.record.followed()
        };
        let now = || self.record.now().before(followed);
        *self.held_since.get_or_insert_with(now)
    }

    /// Opens a connection when the origin is back, after each server was tried in vain.
    ///
    /// A request for which all servers that are left are full waits until one is not. Returns the
    /// error if the request does not wait for the origin.
    pub(super) async fn connect_later(
        &mut self,
        in_flight: &mut InFlight<'r>,
        error: OriginError,
    ) -> Result<Connection, Failure> {
        let waits = self.settings().holds() && !error.is_own();
        if !waits && !error.is_full() {
            return Err(Failure::Origin(error));
        }
        let held_since = self.held_since(error.is_full());
        let place = in_flight.leave();
        let (connection, found) = self.connect_when_back(place, error, held_since).await?;
        *in_flight = found;
        Ok(connection)
    }

    /// Waits until the origin can be reached, and opens a connection then.
    ///
    /// Meanwhile the request waits at the origin's gate, before those that have not left it yet. It
    /// does not wait if a stale answer serves its client at once.
    /// `held_since`: when it first could not be sent.
    pub(super) async fn connect_when_back(
        &mut self,
        place: Option<Box<Place>>,
        error: OriginError,
        held_since: Moment,
    ) -> Result<(Connection, InFlight<'r>), Failure> {
        if self.settings().holds() && error.is_unreachable() && self.client.held() {
            return Err(Failure::Origin(error));
        }
        let (mut place, mut error) = (place, error);
        loop {
            let again = self.wait_again(place, error, held_since).await?;
            self.began = self.record.now();
            let picked = (self.origin()).pick(self.sender(), self.began, || self.hash());
            let mut in_flight = match picked {
                Ok(picked) => picked,
                Err(all_out) => {
                    (place, error) = (Some(Box::new(again)), all_out);
                    continue;
                }
            };
            in_flight.set_place(Some(Box::new(again)));
            self.record.server = Some(in_flight.server());
            match self.connect_to_any(&mut in_flight).await {
                Ok(connection) => {
                    self.sent = self.record.now();
                    self.record.server = Some(in_flight.server());
                    self.client.resumed();
                    return Ok((connection, in_flight));
                }
                Err(Failure::Origin(again)) => (place, error) = (in_flight.leave(), again),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Opens a connection to a server other than the one that was tried, backups last.
    ///
    /// Returns the last failure if none can be reached; `failure` is that of the first one.
    pub(super) async fn connect_to_others(
        &mut self,
        in_flight: &mut InFlight<'r>,
        failure: Failure,
    ) -> Result<Connection, Failure> {
        let origin = self.origin();
        let (mut tried, mut last) = (vec![in_flight.server()], failure);
        loop {
            match origin.untried(&tried, in_flight, self.record.now(), || self.hash()) {
                Ok(()) => {}
                // It waits until one of them is free.
                Err(full) if full.is_full() => return Err(Failure::Origin(full)),
                Err(_) => return Err(last),
            }
            tried.push(in_flight.server());
            match self.connect_to(in_flight).await? {
                Ok(connection) => return Ok(connection),
                Err(error) if error.is_own() => return Err(Failure::Origin(error)),
                Err(error) => last = self.failed(in_flight, Failure::Origin(error)),
            }
            if self.settings().holds() {
                // The time in which the rest is tried is a part of `hold`.
                self.held_since(false);
            }
        }
    }

    /// Gives the request back to the gate, and waits there for a new place.
    async fn wait_again(
        &mut self,
        place: Option<Box<Place>>,
        error: OriginError,
        held_since: Moment,
    ) -> Result<Place, Failure> {
        if error.is_full() {
            // The gate knows that a server is full a little later than the request.
            sleep(FULL_PAUSE).await;
        }
        let (route, origin) = (self.route, self.origin);
        let (to, cost) = (Destination { route, origin }, self.record.cost);
        let gate = GateRequest::new(self.record.gateway, self.record.info, to, cost);
        let (Some(gate), Some(place)) = (gate, place) else {
            return Err(Failure::Origin(error));
        };
        let waiting = self.origin().hold(*place, || gate.key(), error, held_since);
        let waiting = waiting.map_err(Failure::Origin)?;
        let (asked, at_gate) = (self.record.began, &mut self.record.at_gate);
        let worker = self.record.worker;
        let passing = pin!(gate.pass_again(worker, waiting, asked, at_gate));
        let passed = unless_gone(self.client, passing).await?;
        passed.map_err(|why| match why {
            NoTurn::Outage(error) => {
                self.began = worker.pacer.now();
                Failure::Origin(error)
            }
            NoTurn::Rejected(rejection) => Failure::Rejected(rejection),
        })
    }
}
