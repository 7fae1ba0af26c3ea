//! Steps of a request after its zones have admitted it: permits of its keys, then the gate.
//!
//! `zone_queues`, `key_permits` and `origin_gates` have the state of the three. A *permit* is the
//! right to run one request of a key. The *gate* of an origin limits the requests to it.

use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::time::Duration;

use config::Route;
use limit::{Moment, Share};

use super::{Simulator, WaitingRequest};
use crate::observe::metrics::{GateRejected, LimitStatus};
use crate::replay::outcome::{AtGate, Outcome};

impl<'a> Simulator<'a> {
    /// Handles the admission by one zone. After the last one, the request continues.
    pub(super) fn count_admission(&mut self, number: u64) {
        let Entry::Occupied(mut entry) = self.waiting.entry(number) else {
            return;
        };
        let pending = &mut entry.get_mut().joined.pending_zones;
        *pending -= 1;
        if *pending > 0 {
            return;
        }
        let request = entry.remove();
        self.zones.set_waiting(&request.joined.charges, false);
        let outcome = self.proceed(number, request);
        // Without late outcomes, it was reported at the join.
        let late_outcome = outcome.filter(|_| self.has_late_outcomes);
        self.report(number, late_outcome);
    }

    /// Continues the requests that got a permit.
    pub(super) fn run_granted(&mut self) {
        while let Some(number) = self.granted.pop() {
            if let Some(mut request) = self.waiting.remove(&number) {
                let requested = &mut request.joined.requested_permits;
                // The permit that it got is the last one of the list.
                if let Some(permit) = requested.pop()
                    && !requested.iter().all(|it| self.permits.is_free(it))
                {
                    // A request takes all its permits or none, so it gives this one back.
                    self.granted.extend(self.permits.give_back(&permit, number));
                    requested.insert(0, permit);
                }
                let outcome = self.proceed(number, request);
                self.report(number, outcome);
            }
        }
    }

    /// Takes all permits of an admitted request, or none, and then joins its gate.
    ///
    /// Returns the outcome unless the request waits.
    pub(super) fn proceed(
        &mut self,
        number: u64,
        mut request: WaitingRequest<'a>,
    ) -> Option<Outcome> {
        let time = request.outcome.time;
        let requested = &mut request.joined.requested_permits;
        // Permits are taken from the end of the list. One that is not free moves there: the request
        // then waits for it without holding another one.
        if let Some(full) = requested.iter().rposition(|it| !self.permits.is_free(it)) {
            requested[full..].rotate_left(1);
        }
        while let Some(permit) = requested.last() {
            if !self.permits.take(permit, number, time) {
                self.waiting.insert(number, request);
                return None;
            }
            requested.pop();
        }
        let waited = self.now.since(time);
        if !waited.is_zero() && request.outcome.status == LimitStatus::Passed {
            request.outcome.status = LimitStatus::Delayed;
        }
        request.outcome.departure = Some(self.now);
        request.joined_gate = self.now;
        match self.predict(request.route, &request.share, waited) {
            Ok(()) => self.join_gate(number, request),
            Err(reason) => Some(self.reject(number, &request, reason)),
        }
    }

    /// Predicts whether a request that has waited for `waited` may also wait at its gate.
    pub(super) fn predict(
        &self,
        route: &Route,
        share: &Share<Rc<[u8]>>,
        waited: Duration,
    ) -> Result<(), GateRejected> {
        let Some(origin) = route.origin().filter(|origin| self.gates.has_gate(*origin)) else {
            return Ok(());
        };
        // In a dry run, a request waits as long as the gate allows.
        let max_wait = route.max_wait.filter(|_| !route.dry_run);
        let remaining = max_wait.map(|max_wait| max_wait.saturating_sub(waited));
        self.gates.predict(origin, share, remaining, self.now)
    }

    /// Adds a request to its gate. Returns the outcome unless the request waits there.
    fn join_gate(&mut self, number: u64, request: WaitingRequest<'a>) -> Option<Outcome> {
        let now = self.now;
        let origin = request.route.origin();
        let Some(origin) = origin.filter(|origin| self.gates.has_gate(*origin)) else {
            self.permits.end_at(number, now + request.permit_time);
            return Some(request.outcome);
        };
        match self.gates.join(origin, number, &request, now) {
            Ok(true) => {
                self.permits.end_at(number, now + request.permit_time);
                Some(at_gate(request.outcome, request.joined_gate, now, None))
            }
            Ok(false) => {
                self.waiting.insert(number, request);
                None
            }
            Err(reason) => Some(self.reject(number, &request, reason)),
        }
    }

    /// Rejects a request at its gate. Refunds its charges and returns its permits.
    pub(super) fn reject(
        &mut self,
        number: u64,
        request: &WaitingRequest,
        reason: GateRejected,
    ) -> Outcome {
        self.give_back(number, request);
        at_gate(request.outcome, request.joined_gate, self.now, Some(reason))
    }

    /// Refunds the charges of a request, and frees its permits.
    pub(super) fn give_back(&mut self, number: u64, request: &WaitingRequest) {
        self.zones.refund(&request.joined.charges, self.now);
        self.granted.extend(self.permits.end(number));
    }
}

/// Returns the outcome of a request that its gate releases or rejects at `now`.
///
/// `joined_gate`: instant at which the request joined the gate.
pub(super) fn at_gate(
    outcome: Outcome,
    joined_gate: Moment,
    now: Moment,
    rejected: Option<GateRejected>,
) -> Outcome {
    let status = match outcome.status {
        _ if rejected.is_some() => LimitStatus::Rejected,
        LimitStatus::Passed if now > joined_gate => LimitStatus::Delayed,
        status => status,
    };
    Outcome {
        status,
        departure: rejected.is_none().then_some(now),
        at_gate: Some(AtGate {
            since: joined_gate,
            until: now,
            rejected,
        }),
        ..outcome
    }
}
