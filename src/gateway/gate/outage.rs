//! Outages of an origin: its gate releases no request until the origin can be reached again.
//!
//! Only an origin with `hold` in the file has outages: its requests wait for at most that time.
//! `origin/outage` begins an outage, tries to reach the servers, and ends it.

use std::sync::Arc;
use std::time::Duration;

use limit::Moment;
use tokio::sync::oneshot;

use super::permit::Permit;
use super::state::State;
use super::waiting::Seat;
use super::{GateRejection, KeyAtGate, OriginGate};
use crate::origin::error::OriginError;
use crate::time::clock;

/// Outage of an origin: it cannot be reached, and its requests are held.
#[derive(Clone, Debug)]
pub struct GateOutage {
    /// Instant at which the first request could not be sent.
    pub since: Moment,
    /// Latest connection error of the origin.
    pub error: Arc<OriginError>,
}

impl OriginGate {
    /// Begins an outage because of `error`: nothing leaves until [its end](Self::end_outage).
    ///
    /// `version`: [version](Self::version) of the settings under which the origin could not be
    /// reached. `origin`: its name. Returns the number of the outage; `None` if one lasts already.
    ///
    /// # Errors
    ///
    /// Returns the error if no request is to be held: the gateway stops, or the origin now has
    /// other servers or no `hold`.
    pub(crate) fn begin_outage(
        &self,
        origin: &str,
        version: u64,
        error: OriginError,
    ) -> Result<Option<u64>, OriginError> {
        let mut state = self.lock();
        if state.is_closed || state.version != version {
            return Err(error);
        }
        if state.gate.is_out() {
            return Ok(None);
        }
        let now = clock::now();
        state.outages += 1;
        state.gate.begin_outage();
        state.note_blocked(now);
        let number = state.outages;
        let error = Arc::new(error);
        self.outage.send_replace(Some(GateOutage {
            since: now,
            error: Arc::clone(&error),
        }));
        drop(state);
        self.events.outage_began(origin, &*error, now);
        Ok(Some(number))
    }

    /// Records that the origin still cannot be reached, with the error of the last attempt.
    ///
    /// `error`: `None` keeps the known one. Returns whether the outage of this number lasts and
    /// requests wait for its end.
    pub(crate) fn continue_outage(&self, number: u64, error: Option<OriginError>) -> bool {
        let state = self.lock();
        if state.outages != number || !state.gate.is_out() {
            return false;
        }
        if let Some(error) = error {
            self.outage.send_if_modified(|outage| {
                if let Some(outage) = outage {
                    outage.error = Arc::new(error);
                }
                // Waiters need not wake for a new error.
                false
            });
        }
        state.gate.depth() > 0
    }

    /// Ends the outage of this number: waiters leave at the pace of the gate.
    ///
    /// Returns its duration and the number of waiters; `None` if it had ended before.
    pub(crate) fn end_outage(self: &Arc<Self>, number: u64) -> Option<(Duration, usize)> {
        let mut state = self.lock();
        if state.outages != number || !state.gate.is_out() {
            return None;
        }
        let now = clock::now();
        let since = self.outage.borrow().as_ref().map_or(now, |it| it.since);
        let waiting = state.gate.depth();
        state.gate.end_outage(now);
        self.publish_outage_end(&state);
        self.advance(state, now);
        Some((now.since(since), waiting))
    }

    /// Publishes to the waiters that the outage is over, if it is.
    pub(super) fn publish_outage_end(&self, state: &State) {
        if !state.gate.is_out() {
            self.outage
                .send_if_modified(|outage| outage.take().is_some());
        }
    }

    /// Returns whether an outage lasts.
    pub(crate) fn is_in_outage(&self) -> bool {
        self.outage.borrow().is_some()
    }

    /// Returns the version of the origin's settings. It rises with each change that ends an outage.
    pub(crate) fn version(&self) -> u64 {
        self.lock().version
    }

    /// Puts a departed request that could not be sent back at the head of the queue.
    ///
    /// Gives its permit back. On an error, the request keeps the permit.
    pub(super) fn put_back(
        self: &Arc<Self>,
        permit: &mut Permit,
        key: KeyAtGate,
    ) -> Result<Seat, GateRejection> {
        let mut state = self.lock();
        let now = clock::now();
        state.check_room_at_head(&key, now)?;
        if let Some(unreported) = permit.take_unreported() {
            state.report(unreported, now);
        }
        let released = state.release(&self.metrics, now);
        let (sender, grant) = oneshot::channel();
        let position = (state.gate).put_back(permit.number, key, permit.cost, now, sender);
        permit.is_given_back = true;
        state.note_blocked(now);
        let seat = Seat::new(self, &mut state, position, grant, now);
        drop(state);
        self.grant(released);
        Ok(seat)
    }
}
