//! Waiter at a gate: waits for its slot and its permit, or gives up.
//!
//! The gate sends a *grant*, the permit with the instant of the slot, shortly before the slot. The
//! waiter then waits for the slot with the pacer of its own worker.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use limit::{GatePosition, Moment, Share, TimeoutReason, WaitLimits, WaitTimeout};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;
use tokio::time::{sleep, timeout};

use super::alarms::ThreadAlarm;
use super::{GateOutage, GateRejection, Granted, KeyAtGate, OriginGate, Permit, State};
use crate::observe::metrics::GateRejected;
use crate::origin::error::OriginError;
use crate::time::clock;
use crate::time::pacer::Pacer;

/// Request that waits at a gate. Dropping it removes the request from the queue.
pub struct Waiting {
    gate: Arc<OriginGate>,
    share: Share<KeyAtGate>,
    seat: Seat,
    /// Instant from which the request's limits count.
    since: Moment,
    /// Instant at which the request first could not be sent, if it has departed before.
    held_since: Option<Moment>,
    /// Whether the gate has removed the request from the queue.
    is_dequeued: bool,
}

/// Seat of a waiter: its position in the queue, and the receiver of its grant.
pub(super) struct Seat {
    position: GatePosition,
    /// Receiver of the grant. A permit in transit is given back when this is dropped.
    grant: oneshot::Receiver<Granted>,
    /// Alarm of this thread, which counts the waiter until it has left the queue.
    alarm: Rc<ThreadAlarm>,
}

impl Seat {
    /// Seats a waiter of this thread, and sets the thread's alarm.
    pub(super) fn new(
        gate: &Arc<OriginGate>,
        state: &mut State,
        position: GatePosition,
        grant: oneshot::Receiver<Granted>,
        now: Moment,
    ) -> Self {
        Self {
            position,
            grant,
            alarm: ThreadAlarm::join(gate, state, now),
        }
    }
}

/// Reason for which a waiter does not get a permit.
pub enum WaitError {
    /// The request met a bound of the gate.
    Rejected(GateRejection),
    /// The origin could not be reached for all of `hold`.
    Outage(OriginError),
}

impl Waiting {
    pub(super) fn new(
        gate: &Arc<OriginGate>,
        share: Share<KeyAtGate>,
        seat: Seat,
        since: Moment,
        held_since: Option<Moment>,
    ) -> Self {
        Self {
            gate: Arc::clone(gate),
            share,
            seat,
            since,
            held_since,
            is_dequeued: false,
        }
    }

    /// Returns the instant from which the request's limits count.
    pub fn since(&self) -> Moment {
        self.since
    }

    /// Waits for the grant, and then until the slot has come. Returns the permit.
    ///
    /// # Errors
    ///
    /// Returns an error when the request [gives up](WaitTimeout), or if the gateway stops.
    pub async fn wait(
        mut self,
        limits: WaitLimits,
        pacer: &Rc<Pacer>,
    ) -> Result<Permit, WaitError> {
        let (permit, due) = loop {
            let granted = if limits.hold.is_zero() {
                let granted = timeout(limits.queue_timeout, &mut self.seat.grant).await;
                granted.map_err(|_| self.timeout_error(GateRejected::Timeout))?
            } else {
                // Boxed to keep the state of a waiting request small where no requests are held.
                Box::pin(self.wait_for_grant(limits)).await?
            };
            self.is_dequeued = true;
            let Ok(Granted { permit, due }) = granted else {
                return Err(WaitError::Rejected(GateRejection::STOPPING));
            };
            if permit.may_start() {
                break (permit, due);
            }
            // The gateway stood still until the lease had ended: wait again, for a new permit.
            self.wait_again(permit).map_err(WaitError::Rejected)?;
        };
        if due > pacer.now() {
            let (alarm, mut bell) = pacer.alarm();
            alarm.set(Some(due));
            bell.next().await;
        }
        let waited = pacer.now().since(self.since);
        self.gate.metrics.waits.record(waited);
        Ok(permit)
    }

    /// Goes back to the head of the queue with a permit that may no longer be used.
    fn wait_again(&mut self, mut permit: Permit) -> Result<(), GateRejection> {
        let key = self.share.key.clone();
        let seat = self.gate.put_back(&mut permit, key)?;
        self.seat.alarm.leave();
        self.seat = seat;
        self.is_dequeued = false;
        Ok(())
    }

    /// Waits for the grant. During an outage, waits at most as long as requests are held.
    ///
    /// Returns a `RecvError` if the gateway stops.
    async fn wait_for_grant(
        &mut self,
        limits: WaitLimits,
    ) -> Result<Result<Granted, RecvError>, WaitError> {
        let mut wait_timeout = WaitTimeout::new(limits, self.since, self.held_since);
        let mut outages = self.gate.outage.subscribe();
        loop {
            let outage_since = outages.borrow_and_update().as_ref().map(|it| it.since);
            let now = clock::now();
            wait_timeout.note(outage_since, now);
            let (until, reason) = wait_timeout.timeout_at();
            tokio::select! {
                biased;
                granted = &mut self.seat.grant => return Ok(granted),
                // The sender cannot be dropped before `self`: the gate owns it.
                _ = outages.changed() => {}
                () = sleep(until.since(now)) => return Err(self.give_up_error(reason, limits.hold)),
            }
        }
    }

    /// Returns the error of a waiter that gives up for this reason. `hold`: that of the file.
    fn give_up_error(&self, reason: TimeoutReason, hold: Duration) -> WaitError {
        let outage = self.gate.outage.borrow().clone();
        match (reason, outage) {
            (TimeoutReason::Hold, Some(GateOutage { error: last, .. })) => {
                WaitError::Outage(OriginError::Outage { last, hold })
            }
            (TimeoutReason::MaxWait, _) => self.timeout_error(GateRejected::MaxWait),
            // `Hold` without an outage: the outage has just ended, and no time is left for the
            // queue.
            (TimeoutReason::QueueTimeout | TimeoutReason::Hold, _) => {
                self.timeout_error(GateRejected::Timeout)
            }
        }
    }

    /// Returns the rejection of a waiter that waited for too long.
    fn timeout_error(&self, reason: GateRejected) -> WaitError {
        WaitError::Rejected(GateRejection {
            reason,
            retry_after: self.gate.predicted_wait(&self.share),
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.seat.alarm.leave();
        if !self.is_dequeued {
            self.gate.leave(&self.seat.position);
        }
    }
}
