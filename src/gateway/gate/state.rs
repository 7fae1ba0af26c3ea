//! State behind a gate's lock.
//!
//! It combines the schedule of [`limit::Gate`] with back-off, overrides, outages and sharing.

use std::time::Duration;

use limit::{
    self, Cost, GateLimits, GatePosition, Lowered, Moment, Release, Share, WaitLimits,
    WaitRejection,
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
    /// Limits while nothing is lowered or overridden.
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
            let left = self.left(release.number, now);
            released.push((release, left));
        }
        self.note_blocked(now);
        released
    }

    /// Records that a request departs. `number`: number of its departure.
    pub(super) fn left(&mut self, number: u64, now: Moment) -> DepartureRecord {
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
    pub fn load(&self, now: Moment) -> Load {
        let backing_off = self.backing_off.as_ref();
        Load {
            is_quiet: self.gate.is_quiet(),
            is_lowered: backing_off.is_some_and(|it| it.is_lower(now)),
        }
    }

    /// Records the departure of the request that left the gate last. Also returns its number.
    pub(super) fn left_last(&mut self, now: Moment) -> (u64, DepartureRecord) {
        let number = self.gate.departures();
        (number, self.left(number, now))
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
            && backing_off.waits(key, now)
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
                permits.bind(&mut self.gate, now);
            }
            permits.note(&self.gate, now);
        }
    }

    /// Updates the number of permits in use and needed, if permits are shared.
    pub(super) fn note_permits(&mut self, now: Moment) {
        if let Some(permits) = &mut self.permits {
            permits.started(&self.gate);
            permits.note(&self.gate, now);
        }
    }

    /// Takes over the servers of a new version of the origin.
    pub(super) fn set_room(&mut self, room: Option<Room>, now: Moment) {
        self.gate
            .set_room(room.as_ref().and_then(|it| it(now)), now);
        self.room = room;
    }

    /// Returns the limits to show, and what is lowered. Shadow mode does not enforce these limits.
    pub(super) fn shown(&self) -> (GateLimits, Lowered) {
        let limits = *self.gate.limits();
        let backing_off = self.backing_off.as_ref();
        backing_off.map_or((limits, Lowered::default()), |it| it.shown(limits))
    }

    /// Returns when to look again: before the next departure, or when limits may change.
    pub(super) fn alarm_at(&self, now: Moment) -> Option<Moment> {
        let due = self.gate.due().map(|due| due.before(EARLY_ALARM));
        let changes = self.backing_off.as_ref().filter(|_| self.gate.depth() > 0);
        let change = changes.and_then(|it| it.next_change(now));
        let follows = self.room.is_some() && self.gate.depth() > 0 && !self.gate.has_permit();
        let room = follows.then(|| now + ROOM_CHANGES);
        due.into_iter().chain(change).chain(room).min()
    }

    /// Updates everything that depends on the first waiter: blocked times, claims and permits.
    pub(super) fn note_blocked(&mut self, now: Moment) {
        self.blocked.note(BlockedBy::of(&self.gate, now), now);
        if let Some(grid) = &mut self.grid {
            grid.note(&self.gate, now);
        }
        self.note_permits(now);
    }

    /// Lets a request pass (`None`) or wait. `since`: when it began to wait, here or elsewhere.
    pub(super) fn join(
        &mut self,
        share: &Share<KeyAtGate>,
        cost: Cost,
        limits: &WaitLimits,
        has_turn: bool,
        (since, now): (Moment, Moment),
    ) -> Result<Option<(GatePosition, oneshot::Receiver<Granted>)>, GateRejection> {
        self.check_takes(has_turn)?;
        self.predict(share, limits, now)?;
        let (sender, turn) = oneshot::channel();
        let admission = self.gate.join_since(share, cost, since, now, || sender);
        self.note_blocked(now);
        match admission {
            limit::Admission::Passed => Ok(None),
            limit::Admission::Waiting(position) => Ok(Some((position, turn))),
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
        self.check_takes(true)?;
        let room = self.gate.check_room_at_head(key, now);
        room.map_err(|full| GateRejection::full(full, now))
    }

    /// Returns whether a request comes too late. `has_turn`: whether it has waited in a zone.
    pub(super) fn takes_no_more(&self, has_turn: bool) -> bool {
        self.is_closed || (self.is_handed_over && !has_turn)
    }

    /// Returns an error if a request comes [too late](Self::takes_no_more).
    pub(super) fn check_takes(&self, has_turn: bool) -> Result<(), GateRejection> {
        if self.takes_no_more(has_turn) {
            return Err(GateRejection {
                reason: GateRejected::Stopping,
                retry_after: Duration::ZERO,
            });
        }
        Ok(())
    }

    /// Returns an error if a request of this share would wait longer than `limits` allow.
    pub(super) fn predict(
        &self,
        share: &Share<KeyAtGate>,
        limits: &WaitLimits,
        now: Moment,
    ) -> Result<(), GateRejection> {
        self.check_takes(true)?;
        let in_vain = self.gate.check_wait(share, limits, now);
        in_vain.map_err(|in_vain| {
            let (reason, retry_after) = match in_vain {
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
