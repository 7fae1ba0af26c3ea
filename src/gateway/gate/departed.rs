//! Positions ahead of a gate's queue, for a request that goes on instead of a departed one.
//!
//! Requests may share a response: one departs for all (`collapse`). If it gets no answer, another
//! one of them departs next. It need not wait in the queue, because the slot of the departed
//! request was used in vain.

use std::sync::Arc;

use limit::{GatePosition, Moment, Share};
use tokio::sync::oneshot;

use super::waiting::Seat;
use super::{Granted, KeyAtGate, OriginGate, Waiting};
use crate::time::clock;

/// Departed request, instead of which another one can go if it gets no answer.
#[derive(Clone)]
pub struct DepartedRequest {
    pub(super) gate: Arc<OriginGate>,
    /// Number of the departure.
    pub(super) number: u64,
    /// Cost of the request.
    pub(super) cost: u32,
}

/// Reserved position ahead of the queue, for a request of any thread. Dropping it gives it up.
///
/// It keeps the position until the request is found that takes it.
pub struct ReservedPosition {
    gate: Arc<OriginGate>,
    position: GatePosition,
    /// Receiver of the grant; `None` once a request has taken the position.
    grant: Option<oneshot::Receiver<Granted>>,
    /// Instant of the reservation.
    since: Moment,
}

impl DepartedRequest {
    /// Reserves a position ahead of the queue. `None`: the gateway stops, or the queue is full.
    pub fn reserve(&self) -> Option<ReservedPosition> {
        let mut state = self.gate.lock();
        let now = clock::now();
        // The request that will take the position is not known yet, so no key is charged.
        let key = KeyAtGate::default();
        state.check_room_at_head(&key, now).ok()?;
        let (sender, grant) = oneshot::channel();
        let position = (state.gate).join_at_head(self.number, key, self.cost, now, sender);
        state.note_blocked(now);
        drop(state);
        Some(ReservedPosition {
            gate: Arc::clone(&self.gate),
            position,
            grant: Some(grant),
            since: now,
        })
    }
}

impl ReservedPosition {
    /// Lets a request of this thread wait at the reserved position.
    ///
    /// Until then, the alarms of other threads grant its slot.
    pub fn take(mut self) -> Option<Waiting> {
        let grant = self.grant.take()?;
        let mut state = self.gate.lock();
        let now = clock::now();
        let released = state.release(&self.gate.metrics, now);
        let seat = Seat::new(&self.gate, &mut state, self.position.clone(), grant, now);
        drop(state);
        self.gate.grant(released);
        let share = Share::of(KeyAtGate::default());
        Some(Waiting::new(&self.gate, share, seat, self.since, None))
    }
}

impl Drop for ReservedPosition {
    fn drop(&mut self) {
        if self.grant.is_some() {
            self.gate.leave(&self.position);
        }
    }
}
