//! State behind a gate's lock: when requests may leave, and which waiter is next.
//!
//! It combines the queue and the schedule of [`limit::Gate`] with back-off, overrides, outages and
//! sharing. The parent module defines slot, permit, waiter, grant and share.

use std::time::Duration;

use limit::{
    self, Cost, GateLimits, GatePosition, Moment, Release, Share, WaitLimits, WaitRejection,
};
use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::backing_off::BackingOff;
use super::blocked::{Blocked, BlockedBy};
use super::observer::Observer;
use super::overrides::GateOverride;
use super::permit::{DepartureRecord, Load, Unreported};
use super::shared_permits::SharedPermits;
use super::shared_rate::SharedGrid;
use super::{GateRejection, Granted, KeyAtGate, ServerLimit};
use crate::observe::metrics::{GateMetrics, GateRejected};

/// Time before a slot at which its waiter gets the grant.
const EARLY_RELEASE: Duration = Duration::from_millis(1);
/// Time before a slot at which an alarm rings.
///
/// Less than [`EARLY_RELEASE`], so that one alarm releases several requests of a fast gate.
const EARLY_ALARM: Duration = Duration::from_micros(500);
/// Interval at which a gate with waiters checks whether the origin's servers allow more requests.
const SERVER_LIMIT_INTERVAL: Duration = Duration::from_millis(50);

/// Queue and schedule of a gate.
pub(super) type Queue = limit::Gate<KeyAtGate, oneshot::Sender<Granted>>;

/// State behind a gate's lock. It does not read the clock: callers pass the time.
pub(super) struct State {
    pub(super) gate: Queue,
    /// Back-off; `None` if the file has no `backoff`.
    pub(super) backing_off: Option<BackingOff>,
    /// Limit of the origin's servers; `None`: the file limits none of them.
    pub(super) server_limit: Option<ServerLimit>,
    /// Shared rate; `None`: the rate is not shared with other gateways.
    pub(super) grid: Option<SharedGrid>,
    /// Shared permits; `None`: the permits are not shared with other gateways.
    pub(super) permits: Option<Box<SharedPermits>>,
    /// Limits of the file, with the effective rate of the gateways that share it.
    pub(super) file: GateLimits,
    /// Override in force; `None`: the limits of the file apply.
    pub(super) gate_override: Option<Box<GateOverride>>,
    /// Observer of an experiment; `None`: no experiment runs.
    pub(super) observer: Option<Box<Observer>>,
    /// Times for which the first waiter was blocked, by cause.
    pub(super) blocked: Blocked,
    /// Number of threads whose alarm for the next departure is set.
    pub(super) alarm_count: usize,
    /// Whether the gate rejects all requests for ever.
    pub(super) is_closed: bool,
    /// Whether the next process relies on the schedule as it is: new requests may not join.
    pub(super) is_handed_over: bool,
    /// Number of outages so far, including one that still lasts. Identifies the last outage.
    pub(super) outages: u64,
    /// Number of reloads that gave the origin other servers, or no `hold`.
    ///
    /// A request that was sent before such a reload cannot begin an outage.
    pub(super) version: u64,
}

/// Waiters whose slot has come, each with the record of its departure.
///
/// Their grants are sent outside the lock.
pub(super) type Released = SmallVec<
    [(
        Release<KeyAtGate, oneshot::Sender<Granted>>,
        DepartureRecord,
    ); 4],
>;

impl State {
    /// Releases the requests whose slot is at most [`EARLY_RELEASE`] away.
    pub(super) fn release(&mut self, metrics: &GateMetrics, now: Moment) -> Released {
        self.back_off(metrics, now);
        self.follow_outer_limits(|| now);
        let mut released = Released::new();
        while let Some(release) = self.gate.take(now + EARLY_RELEASE) {
            let departure = self.record_departure(release.number, now);
            released.push((release, departure));
        }
        self.note_blocked(now);
        released
    }

    /// Records that a request departs. `number`: number of its departure.
    pub(super) fn record_departure(&mut self, number: u64, now: Moment) -> DepartureRecord {
        let in_flight = self.gate.in_flight();
        if let Some(observer) = &mut self.observer {
            observer.note_departure(number, in_flight, now);
        }
        let backing_off = self.backing_off.as_mut();
        DepartureRecord {
            sent: backing_off.map(|it| it.note_departure(in_flight, now)),
            is_quiet: self.gate.is_quiet(),
        }
    }

    /// Returns the load of the origin now.
    pub(super) fn load(&self, now: Moment) -> Load {
        Load {
            is_quiet: self.gate.is_quiet(),
            is_lowered: self.is_backed_off(now),
        }
    }

    /// Returns whether the back-off lowers a limit or pauses the gate.
    pub(super) fn is_backed_off(&self, now: Moment) -> bool {
        let backing_off = self.backing_off.as_ref();
        backing_off.is_some_and(|it| it.is_in_force(now))
    }

    /// Records the departure of the request that has just passed. Also returns its number.
    pub(super) fn record_last_departure(&mut self, now: Moment) -> (u64, DepartureRecord) {
        let number = self.gate.departures();
        (number, self.record_departure(number, now))
    }

    /// Reports the result of a request to the back-off, if there is one.
    pub(super) fn report(&mut self, unreported: Unreported, now: Moment) {
        if let Some(backing_off) = &mut self.backing_off {
            backing_off.report(unreported, now);
        }
    }

    /// Records that a request of this key waits.
    ///
    /// This ends a pause that the origin has ordered for another key alone.
    pub(super) fn note_waiter(&mut self, key: &KeyAtGate, now: Moment) {
        if let Some(backing_off) = &mut self.backing_off
            && backing_off.note_waiter(key, now)
        {
            self.end_pause(now);
        }
    }

    /// Lowers or raises the gate's limits, if the back-off says so now.
    pub(super) fn back_off(&mut self, metrics: &GateMetrics, now: Moment) {
        if let Some(backing_off) = &mut self.backing_off {
            backing_off.apply(&mut self.gate, metrics, now);
        }
    }

    /// Follows the limit of the origin's servers, and the permits leased to this gateway.
    ///
    /// `now` is called only if the gate has one of both.
    pub(super) fn follow_outer_limits(&mut self, now: impl FnOnce() -> Moment) {
        if self.server_limit.is_none() && self.permits.is_none() {
            return;
        }
        let now = now();
        if let Some(server_limit) = &self.server_limit {
            self.gate.set_room(server_limit(now), now);
        }
        self.follow_permits(now);
    }

    /// Records that a request has given its permit back. The permit may have to go to the pool.
    pub(super) fn note_permit_back(&mut self, now: Moment) {
        if let Some(permits) = &mut self.permits {
            if permits.note_end(&self.gate, now) {
                permits.limit_to_held(&mut self.gate, now);
            }
            permits.wake_task(&self.gate, now);
        }
    }

    /// Updates the number of permits in use and needed, if permits are shared.
    pub(super) fn note_permits(&mut self, now: Moment) {
        if let Some(permits) = &mut self.permits {
            permits.note_start(&self.gate);
            permits.wake_task(&self.gate, now);
        }
    }

    /// Replaces the limit of the servers, after a reload.
    pub(super) fn set_server_limit(&mut self, server_limit: Option<ServerLimit>, now: Moment) {
        let allowed = server_limit.as_ref().and_then(|allowed_at| allowed_at(now));
        self.gate.set_room(allowed, now);
        self.server_limit = server_limit;
    }

    /// Returns the limits to show. In shadow mode they are those that back-off would enforce.
    pub(super) fn limits_to_show(&self) -> GateLimits {
        let limits = *self.gate.limits();
        let backing_off = self.backing_off.as_ref();
        backing_off.map_or(limits, |it| it.lowered(limits))
    }

    /// Returns when to look again: before the next departure, or when limits may change.
    pub(super) fn alarm_at(&self, now: Moment) -> Option<Moment> {
        let departure = self.gate.due().map(|due| due.before(EARLY_ALARM));
        if self.gate.depth() == 0 {
            return departure;
        }
        let backing_off = self.backing_off.as_ref();
        let backoff_change = backing_off.and_then(|it| it.next_change(now));
        let is_full = self.server_limit.is_some() && !self.gate.has_permit();
        let limit_check = is_full.then(|| now + SERVER_LIMIT_INTERVAL);
        let instants = [departure, backoff_change, limit_check];
        instants.into_iter().flatten().min()
    }

    /// Updates what depends on the first waiter: blocked times, and tasks that call the store.
    pub(super) fn note_blocked(&mut self, now: Moment) {
        self.blocked.note(BlockedBy::of(&self.gate, now), now);
        if let Some(grid) = &mut self.grid {
            grid.wake_task(&self.gate, now);
        }
        self.note_permits(now);
    }

    /// Lets a request pass or wait. Returns the position of a waiter and the receiver of its grant.
    ///
    /// `None`: the request has passed. `is_admitted`: whether a zone has admitted the request.
    /// `since`: instant at which it began to wait, here or elsewhere.
    pub(super) fn join(
        &mut self,
        share: &Share<KeyAtGate>,
        cost: Cost,
        limits: &WaitLimits,
        is_admitted: bool,
        since: Moment,
        now: Moment,
    ) -> Result<Option<(GatePosition, oneshot::Receiver<Granted>)>, GateRejection> {
        self.check_open(is_admitted)?;
        self.predict(share, limits, now)?;
        let (sender, grant) = oneshot::channel();
        let admission = self.gate.join_since(share, cost, since, now, || sender);
        self.note_blocked(now);
        match admission {
            limit::Admission::Passed => Ok(None),
            limit::Admission::Waiting(position) => Ok(Some((position, grant))),
            limit::Admission::Rejected(full) => Err(GateRejection::full(full, now)),
        }
    }

    /// Returns an error if no more requests of this key may wait at the head of the queue.
    ///
    /// Requests that have departed before, but could not be sent, wait there.
    pub(super) fn check_room_at_head(
        &self,
        key: &KeyAtGate,
        now: Moment,
    ) -> Result<(), GateRejection> {
        self.check_open(true)?;
        let checked = self.gate.check_room_at_head(key, now);
        checked.map_err(|full| GateRejection::full(full, now))
    }

    /// Returns an error if the gate takes no more requests.
    ///
    /// After the handover it takes only requests that a zone has admitted (`is_admitted`).
    pub(super) fn check_open(&self, is_admitted: bool) -> Result<(), GateRejection> {
        if self.is_closed || (self.is_handed_over && !is_admitted) {
            return Err(GateRejection::STOPPING);
        }
        Ok(())
    }

    /// Returns an error if a request of this share would wait for longer than `limits` allow.
    ///
    /// The caller has checked whether the gate takes new requests after a handover.
    pub(super) fn predict(
        &self,
        share: &Share<KeyAtGate>,
        limits: &WaitLimits,
        now: Moment,
    ) -> Result<(), GateRejection> {
        self.check_open(true)?;
        let checked = self.gate.check_wait(share, limits, now);
        checked.map_err(|rejection| {
            let (reason, retry_after) = match rejection {
                WaitRejection::Full(full) => return GateRejection::full(full, now),
                WaitRejection::MaxWait(over) => (GateRejected::MaxWait, over),
                WaitRejection::QueueTimeout(over) => (GateRejected::Timeout, over),
            };
            GateRejection {
                reason,
                retry_after,
            }
        })
    }
}
