//! State behind a gate's lock.
//!
//! It combines the schedule of [`limit::Gate`] with back-off, overrides, outages and sharing.

use std::time::Duration;

use limit::{
    self, Cost, GateLimits, GatePosition, Moment, Release, Share, WaitLimits, WaitRejection,
};
use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::backing_off::BackingOff;
use super::blocked::{Blocked, BlockedBy};
use super::claims::SharedGrid;
use super::observer::Observer;
use super::overrides::GateOverride;
use super::permit::{DepartureRecord, Load, Unreported};
use super::permits::SharedPermits;
use super::{GateRejection, Granted, KeyAtGate, Room};
use crate::observe::metrics::{GateMetrics, GateRejected};

/// Time by which slots are given out early.
const EARLY_RELEASE: Duration = Duration::from_millis(1);
/// Time by which alarms ring before a slot.
///
/// Less than [`EARLY_RELEASE`], so that one alarm gives out several slots of a fast gate.
const EARLY_ALARM: Duration = Duration::from_micros(500);
/// Interval at which a gate with waiters checks whether the origin's servers allow more requests.
const ROOM_CHANGES: Duration = Duration::from_millis(50);

/// Queue and schedule of a gate.
pub(super) type Queue = limit::Gate<KeyAtGate, oneshot::Sender<Granted>>;

/// State behind a gate's lock. It does not read the clock: callers pass the time.
pub(super) struct State {
    pub(super) gate: Queue,
    /// Back-off; `None` if the file has no `backoff`.
    pub(super) backing_off: Option<BackingOff>,
    /// Limit of the origin's servers; `None`: the file limits none of them.
    pub(super) room: Option<Room>,
    /// Shared rate; `None`: the rate is not shared with other gateways.
    pub(super) grid: Option<SharedGrid>,
    /// Shared permits; `None`: the permits are not shared with other gateways.
    pub(super) permits: Option<Box<SharedPermits>>,
    /// Limits of the file, with the effective rate of the gateways that share it.
    pub(super) file: GateLimits,
    /// Override in force.
    pub(super) overridden: Option<Box<GateOverride>>,
    /// Observer of an experiment; `None`: no experiment runs.
    pub(super) observer: Option<Box<Observer>>,
    pub(super) blocked: Blocked,
    /// Number of threads that have set their alarm for the next departure.
    pub(super) armed: usize,
    pub(super) is_closed: bool,
    /// Whether the next process relies on the schedule as it is: new requests may not join.
    pub(super) is_handed_over: bool,
    /// Number of outages so far. The last one may still last.
    pub(super) outages: u64,
    /// Number of reloads that gave the origin other servers, or no `hold`.
    pub(super) version: u64,
}

/// Requests whose slot has come. The grants are sent outside the lock.
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
        self.follow_room(|| now);
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
            observer.sent(number, in_flight, now);
        }
        let backing_off = self.backing_off.as_mut();
        DepartureRecord {
            sent: backing_off.map(|it| it.sent(in_flight, now)),
            is_quiet: self.gate.is_quiet(),
        }
    }

    /// Returns the load of the origin.
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

    /// Records the last departure from the gate. Also returns its number.
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

    /// Records that a request of this key waits. It may end a pause ordered for another key only.
    pub(super) fn note_waiter(&mut self, key: &KeyAtGate, now: Moment) {
        if let Some(backing_off) = &mut self.backing_off
            && backing_off.note_waiter(key, now)
        {
            self.end_pause(now);
        }
    }

    /// Lowers or raises the gate's limits, if it is time.
    pub(super) fn back_off(&mut self, metrics: &GateMetrics, now: Moment) {
        if let Some(backing_off) = &mut self.backing_off {
            backing_off.apply(&mut self.gate, metrics, now);
        }
    }

    /// Follows the limit of the origin's servers, and the permits lent to this gateway.
    pub(super) fn follow_room(&mut self, now: impl FnOnce() -> Moment) {
        if self.room.is_none() && self.permits.is_none() {
            return;
        }
        let now = now();
        if let Some(room) = &self.room {
            self.gate.set_room(room(now), now);
        }
        self.follow_permits(now);
    }

    /// Records that a request has ended. Its permit may have to go back to the pool.
    pub(super) fn permit_ended(&mut self, now: Moment) {
        if let Some(permits) = &mut self.permits {
            if permits.ended(&self.gate, now) {
                permits.limit_to_held(&mut self.gate, now);
            }
            permits.wake_task(&self.gate, now);
        }
    }

    /// Updates the number of permits in use and needed, if permits are shared.
    pub(super) fn note_permits(&mut self, now: Moment) {
        if let Some(permits) = &mut self.permits {
            permits.started(&self.gate);
            permits.wake_task(&self.gate, now);
        }
    }

    /// Takes over the servers of a new version of the origin.
    pub(super) fn set_room(&mut self, room: Option<Room>, now: Moment) {
        let permits = room.as_ref().and_then(|room| room(now));
        self.gate.set_room(permits, now);
        self.room = room;
    }

    /// Returns the limits to show. In shadow mode they are lowered, but not enforced.
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
        let is_full = self.room.is_some() && !self.gate.has_permit();
        let room_change = is_full.then(|| now + ROOM_CHANGES);
        let all = [departure, backoff_change, room_change];
        all.into_iter().flatten().min()
    }

    /// Updates everything that depends on the first waiter: blocked times, claims and permits.
    pub(super) fn note_blocked(&mut self, now: Moment) {
        self.blocked.note(BlockedBy::of(&self.gate, now), now);
        if let Some(grid) = &mut self.grid {
            grid.wake_task(&self.gate, now);
        }
        self.note_permits(now);
    }

    /// Lets a request pass (`None`) or wait. `since`: when it began to wait, here or elsewhere.
    ///
    /// `is_admitted`: whether a zone has admitted the request.
    pub(super) fn join(
        &mut self,
        share: &Share<KeyAtGate>,
        cost: Cost,
        limits: &WaitLimits,
        is_admitted: bool,
        (since, now): (Moment, Moment),
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
    /// Requests that could not be sent wait there.
    pub(super) fn check_room_at_head(
        &self,
        key: &KeyAtGate,
        now: Moment,
    ) -> Result<(), GateRejection> {
        self.check_open(true)?;
        let room = self.gate.check_room_at_head(key, now);
        room.map_err(|full| GateRejection::full(full, now))
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
