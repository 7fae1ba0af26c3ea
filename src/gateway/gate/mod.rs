//! Gate of an origin: limits the rate and the requests in flight, fairly between keys.
//!
//! A *permit* is the right to run one request at the origin. A *slot* is an instant at which one
//! request may leave for the origin. A *waiter* is a request that waits here for both; its *grant*
//! is the message that it has them. The *share* of a request is the key whose queue it joins, with
//! its weight.
//!
//! All workers share one gate. The arithmetic is [`limit::Gate`], behind one short lock. A waiter
//! gets its grant up to one millisecond early, and the pacer of its own worker releases it on time.
//! So a wake-up between threads does not delay a departure.
//!
//! | module | content |
//! |---|---|
//! | `state` | the state behind the lock |
//! | `limits`, `overrides` | limits in force: those of the file, and an operator's override |
//! | `permit`, `waiting` | a request at the origin, and one that waits for it |
//! | `alarms` | wake-ups of the threads with waiters |
//! | `outage`, `departed` | waiters ahead of the queue: after an outage, or instead of another |
//! | `backing_off` | lower limits while the origin has trouble |
//! | `blocked`, `observer` | what waiters waited for, and the requests of an experiment |
//! | `sharing` | starts what the gates of several gateways share |
//! | `shared_rate`, `shared_permits`, `shared_backoff` | the three things that they can share |
//! | `store_task`, `store_key` | the calls of Redis for it |
//! | `key` | the key of a request at the gate |
//! | `saved` | what the next process gets |
//! | `api`, `status`, `report` | what users see |

mod alarms;
pub(crate) mod api;
mod backing_off;
mod blocked;
mod departed;
mod key;
mod limits;
mod observer;
mod outage;
mod overrides;
mod permit;
pub(crate) mod report;
mod saved;
mod shared_backoff;
mod shared_permits;
mod shared_rate;
mod sharing;
mod state;
mod status;
mod store_key;
mod store_task;
mod waiting;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use limit::{self, Backoff, Cost, DestinationId, Full, GatePosition, Moment, Share, WaitLimits};
use tokio::sync::watch;

use crate::observe::events::GateEvents;
use crate::observe::metrics::{GateMetrics, GateRejected};
use crate::time::clock;
use alarms::ThreadAlarm;
use backing_off::BackingOff;
use blocked::Blocked;
pub use blocked::{BlockedBy, BlockedTimes};
pub use departed::{DepartedRequest, ReservedPosition};
pub use key::KeyAtGate;
pub use outage::GateOutage;
pub use overrides::{GateOverride, GateValues, OverrideRefusal};
pub(crate) use permit::Load;
use permit::Unreported;
pub use permit::{InvalidRetryAfter, Permit};
pub use saved::SavedOriginGate;
use shared_permits::NO_LEASE;
pub use shared_permits::PermitSharing;
pub use shared_rate::GateSharing;
use state::{Queue, Released, State};
pub use status::GateStatus;
use waiting::Seat;
pub use waiting::{WaitError, Waiting};

/// Function: number of requests that the servers of an origin allow; `None`: they set no limit.
///
/// It must not lock, as it runs behind the gate's lock.
pub(crate) type ServerLimit = Arc<dyn Fn(Moment) -> Option<usize> + Send + Sync>;

/// Gate of an origin, shared by all workers.
pub struct OriginGate {
    state: Mutex<State>,
    metrics: Arc<GateMetrics>,
    events: GateEvents,
    /// Notifies threads with waiters: each then checks when the next request is due.
    changes: watch::Sender<()>,
    /// Publishes the outages of the origin to the waiters. Changed only under the lock.
    outage: watch::Sender<Option<GateOutage>>,
    /// Number of the gate, for waiters in zones.
    destination: Option<DestinationId>,
    /// End of the lease of its permits, in nanoseconds of the clock. `NO_LEASE`: there is no lease.
    lease_end: AtomicU64,
    /// Whether an experiment follows the departing requests.
    is_observed: AtomicBool,
}

/// Grant: the permit of a waiter, and the instant of its slot.
struct Granted {
    permit: Permit,
    due: Moment,
}

/// Result of joining the gate.
pub enum Admission {
    /// The request goes on at once.
    Passed(Permit),
    /// The request waits.
    Waiting(Waiting),
}

/// Reason for which the gate rejects a request, and when to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateRejection {
    /// Bound that the request met.
    pub reason: GateRejected,
    /// Time until the same request would be accepted, if no other request comes.
    pub retry_after: Duration,
}

impl OriginGate {
    /// Creates the gate of an origin; `None` if the file gives it none.
    ///
    /// `server_limit`: `None` if no server has a limit. `metrics`: those of earlier gates of the
    /// origin, whose counts go on.
    pub(crate) fn new(
        origin: &config::Origin,
        server_limit: Option<ServerLimit>,
        metrics: Arc<GateMetrics>,
    ) -> Option<Arc<Self>> {
        let limits = origin.gate()?;
        let mut gate = limit::Gate::new(limits);
        gate.set_classes(&origin.classes);
        gate.name_keys_by(KeyAtGate::cluster_hash);
        let settings = origin.backoff.as_ref();
        let backing_off = settings.map(|it| BackingOff::new(it, limits, clock::now()));
        Some(Arc::new(Self {
            state: Mutex::new(State {
                gate,
                backing_off,
                server_limit,
                grid: None,
                permits: None,
                file: limits,
                gate_override: None,
                observer: None,
                blocked: Blocked::default(),
                alarm_count: 0,
                is_closed: false,
                is_handed_over: false,
                outages: 0,
                version: 0,
            }),
            metrics,
            events: GateEvents::default(),
            changes: watch::Sender::new(()),
            outage: watch::Sender::new(None),
            destination: saved::next_destination(),
            lease_end: AtomicU64::new(NO_LEASE),
            is_observed: AtomicBool::new(false),
        }))
    }

    /// Rejects all waiters and all later requests.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let waiters = state.gate.clear();
        state.note_blocked(clock::now());
        drop(state);
        // A waiter whose sender is dropped knows that the gate is closed.
        drop(waiters);
    }

    /// Returns whether requests wait here or are at the origin.
    pub(crate) fn is_in_use(&self) -> bool {
        let state = self.lock();
        state.gate.depth() > 0 || state.gate.in_flight() > 0
    }

    /// Returns whether the origin's `Retry-After` has ordered a pause that has not ended.
    pub(crate) fn is_ordered_to_pause(&self) -> bool {
        let state = self.lock();
        let backing_off = state.backing_off.as_ref();
        backing_off.is_some_and(|it| it.is_ordered_to_pause(clock::now()))
    }

    /// Returns the gate's metrics.
    pub fn metrics(&self) -> &Arc<GateMetrics> {
        &self.metrics
    }

    /// Returns the gate's log events.
    pub fn events(&self) -> &GateEvents {
        &self.events
    }

    /// Returns why a request of this share would be rejected now. Charges nothing.
    ///
    /// `limits` returns the longest times that the request may wait. It and `share` are called only
    /// if the request would not pass at once.
    pub fn predict_rejection(
        &self,
        share: impl FnOnce() -> Share<KeyAtGate>,
        limits: impl FnOnce() -> WaitLimits,
    ) -> Option<GateRejection> {
        let mut state = self.lock();
        if let Err(closed) = state.check_open(false) {
            return Some(closed);
        }
        state.follow_outer_limits(clock::now);
        if state.gate.is_free(clock::now()) {
            return None;
        }
        // Finding the share takes time, so the lock is released meanwhile.
        drop(state);
        let share = share();
        let mut state = self.lock();
        let now = clock::now();
        state.note_waiter(&share.key, now);
        state.predict(&share, &limits(), now).err()
    }

    /// Lets a request pass if it need not wait; otherwise lets it wait for its slot.
    ///
    /// - `is_charged`: whether the share is charged also if the request need not wait. If not,
    ///   `share` is called only if the request has to wait.
    /// - `limits`: the longest times that the request may wait.
    /// - `is_admitted`: whether a zone has admitted the request, so that it may go on after the
    ///   [handover](Self::hand_over).
    /// - `waited`: time for which the request has already waited for its origin elsewhere. It
    ///   counts for its position in the queue of its key.
    ///
    /// # Errors
    ///
    /// Returns an error if the request may not wait.
    pub fn join(
        self: &Arc<Self>,
        is_charged: bool,
        share: impl Fn() -> Share<KeyAtGate>,
        cost: Cost,
        limits: &WaitLimits,
        is_admitted: bool,
        waited: Duration,
    ) -> Result<Admission, GateRejection> {
        let charged = is_charged.then(&share);
        if let Some(permit) = self.pass(charged.as_ref(), cost, is_admitted) {
            return Ok(Admission::Passed(permit));
        }
        let share = charged.unwrap_or_else(share);
        let mut state = self.lock();
        let now = clock::now();
        state.note_waiter(&share.key, now);
        let released = state.release(&self.metrics, now);
        let since = now.before(waited);
        let joined = state.join(&share, cost, limits, is_admitted, since, now);
        let admission = joined.map(|waits| {
            let Some((position, grant)) = waits else {
                let (number, departure) = state.record_last_departure(now);
                return Admission::Passed(Permit::new(self, number, cost.get(), departure));
            };
            let seat = Seat::new(self, &mut state, position, grant, now);
            Admission::Waiting(Waiting::new(self, share, seat, now, None))
        });
        drop(state);
        self.grant(released);
        admission
    }

    /// Lets a request pass if it need not wait. `charged`: the share that is charged for it.
    fn pass(
        self: &Arc<Self>,
        charged: Option<&Share<KeyAtGate>>,
        cost: Cost,
        is_admitted: bool,
    ) -> Option<Permit> {
        let mut state = self.lock();
        state.check_open(is_admitted).ok()?;
        let now = clock::now();
        state.follow_outer_limits(|| now);
        let passes = match charged {
            Some(share) => state.gate.pass_as(share, cost, now),
            None => state.gate.pass(cost, now),
        };
        state.note_permits(now);
        let (number, departure) = passes.then(|| state.record_last_departure(now))?;
        drop(state);
        Some(Permit::new(self, number, cost.get(), departure))
    }

    /// Returns how long a new request of this share would wait from now on.
    pub(crate) fn predicted_wait(&self, share: &Share<KeyAtGate>) -> Duration {
        let state = self.lock();
        let now = clock::now();
        let predicted = state.gate.predict(share, now);
        predicted.unwrap_or_else(|full| full.retry_at.since(now))
    }

    /// Removes a waiter whose slot has not come.
    fn leave(self: &Arc<Self>, position: &GatePosition) {
        let mut state = self.lock();
        let waiter = state.gate.leave(position);
        state.note_blocked(clock::now());
        drop(state);
        drop(waiter);
    }

    /// Calls `act` with the back-off, if the gate has one.
    fn with_backoff(&self, act: impl FnOnce(&mut Backoff)) {
        if let Some(backing_off) = &mut self.lock().backing_off {
            act(&mut backing_off.backoff);
        }
    }

    /// Reports the result of a request to the back-off.
    fn report(self: &Arc<Self>, unreported: Unreported) {
        let mut state = self.lock();
        let now = clock::now();
        state.report(unreported, now);
        self.advance(state, now);
    }

    /// Corrects the charge of a departed request: `charged` was charged, its cost is `cost`.
    fn settle(self: &Arc<Self>, charged: u32, cost: u32) {
        let mut state = self.lock();
        let now = clock::now();
        let mut released = state.release(&self.metrics, now);
        match cost.checked_sub(charged) {
            // Do not delay the remaining waiters: the next process relies on their slots.
            Some(_) if state.is_handed_over => {}
            Some(more) => state.gate.bill(more, now),
            None => state.gate.credit(charged - cost, now),
        }
        released.extend(state.release(&self.metrics, now));
        self.notify(state, released, now);
    }

    /// Takes a permit back, and reports the result of its request to the back-off.
    fn give_back(self: &Arc<Self>, unreported: Option<Unreported>) {
        let mut state = self.lock();
        if state.gate.depth() == 0 && unreported.is_none() {
            // The instant matters to waiters only, so the clock is not read.
            state.gate.give_back(Moment::default());
            if state.permits.is_some() {
                state.note_permit_back(clock::now());
            }
            return;
        }
        let now = clock::now();
        if let Some(unreported) = unreported {
            state.report(unreported, now);
        }
        state.gate.give_back(now);
        state.note_permit_back(now);
        self.advance(state, now);
    }

    /// Grants the slots that have come, and unlocks the state.
    fn advance(self: &Arc<Self>, mut state: MutexGuard<'_, State>, now: Moment) {
        let released = state.release(&self.metrics, now);
        self.notify(state, released, now);
    }

    /// Unlocks the state and sends grants. Wakes the other threads unless an alarm is set.
    fn notify(self: &Arc<Self>, mut state: MutexGuard<'_, State>, released: Released, now: Moment) {
        let is_alarm_set = ThreadAlarm::set_here(self, &mut state, now);
        drop(state);
        self.grant(released);
        if !is_alarm_set {
            self.changes.send_replace(());
        }
    }

    /// Sends grants to waiters. The permit of a disconnected waiter is given back.
    fn grant(self: &Arc<Self>, released: Released) {
        for (release, departure) in released {
            let permit = Permit::new(self, release.number, release.cost, departure);
            let due = release.due;
            if release.waiter.send(Granted { permit, due }).is_err() {
                self.metrics.lost_slots.add(1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GateRejection {
    /// Rejection while the gateway stops.
    pub(crate) const STOPPING: Self = Self {
        reason: GateRejected::Stopping,
        retry_after: Duration::ZERO,
    };

    /// Rejection after the gateway stood still until the lease of the request's permit had ended.
    pub const LEASE_ENDED: Self = Self {
        reason: GateRejected::Timeout,
        retry_after: Duration::from_secs(1),
    };

    /// Creates the rejection of a request that finds its queue full.
    fn full(full: Full, now: Moment) -> Self {
        Self {
            // The queue of all keys together, or the queue of its key.
            reason: if full.for_all {
                GateRejected::MaxQueue
            } else {
                GateRejected::Queue
            },
            retry_after: full.retry_at.since(now),
        }
    }
}
