//! Position in a gate's queue that a second request can take over from a departed one.
//!
//! When a departed request gets no answer, another request of the same shared response reserves a
//! position ahead of the queue. The zone key of a waiter is here, too.

use std::sync::Arc;

use limit::{GatePosition, Moment, Share, stable_hash};
use ring::digest::{Context, SHA256};
use tokio::sync::oneshot;

use super::alarms::Alarms;
use super::waiting::Seat;
use super::{Granted, OriginGate, Waiting};
use crate::time::clock;
use crate::zone::Key;

/// Departure of a request, from which another request can take over.
///
/// If the departed request gets no answer, a request for the same resource goes ahead of the queue.
#[derive(Clone)]
pub struct DepartedRequest {
    gate: Arc<OriginGate>,
    /// Number of the departure.
    number: u64,
    /// Cost of the request.
    cost: u32,
}

/// Reserved position ahead of the queue, for a request of any thread. Dropping it gives it up.
pub struct ReservedPosition {
    gate: Arc<OriginGate>,
    position: GatePosition,
    /// Receiver of the grant; `None` once a request has taken the position.
    turn: Option<oneshot::Receiver<Granted>>,
    since: Moment,
}

impl DepartedRequest {
    pub(super) fn new(gate: &Arc<OriginGate>, number: u64, cost: u32) -> Self {
        Self {
            gate: Arc::clone(gate),
            number,
            cost,
        }
    }

    /// Reserves a position ahead of the queue. `None`: the gateway stops, or the queue is full.
    pub fn reserve(&self) -> Option<ReservedPosition> {
        let mut state = self.gate.lock();
        let now = clock::now();
        // The key of the request that will take it is not known yet. No key is charged.
        let key = KeyAtGate::default();
        state.check_room_at_head(&key, now).ok()?;
        let (sender, turn) = oneshot::channel();
        let position = (state.gate).join_at_head(self.number, key, self.cost, now, sender);
        state.note_blocked(now);
        drop(state);
        Some(ReservedPosition {
            gate: Arc::clone(&self.gate),
            position,
            turn: Some(turn),
            since: now,
        })
    }
}

impl ReservedPosition {
    /// Lets a request of this thread wait at the reserved position.
    ///
    /// Until then, the alarms of other threads grant its slot.
    pub fn take(mut self) -> Option<Waiting> {
        let turn = self.turn.take()?;
        let mut state = self.gate.lock();
        let now = clock::now();
        let released = state.release(&self.gate.metrics, now);
        let alarms = Alarms::join(&self.gate, &mut state, now);
        drop(state);
        self.gate.grant(released);
        let seat = Seat {
            position: self.position.clone(),
            turn,
            alarms,
        };
        let share = Share::of(KeyAtGate::default());
        Some(Waiting::new(&self.gate, share, seat, self.since, None))
    }
}

impl Drop for ReservedPosition {
    fn drop(&mut self) {
        if self.turn.is_some() {
            self.gate.leave(&self.position);
        }
    }
}

/// Key by which a request shares a gate.
///
/// A reload may give the gate the keys of another zone while requests wait. Their keys stay those
/// of the zone by which they joined. The plans of that zone apply, and it decides how keys are
/// shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyAtGate {
    /// Name of the zone; `None` if the origin names no zone.
    pub zone: Option<Arc<str>>,
    /// Key within the zone. Empty for all requests if there is no zone.
    pub key: Key,
}

impl KeyAtGate {
    /// Returns the hash by which the back-off knows the key; `None` if the origin names no zone.
    pub(super) fn hash(&self) -> Option<u64> {
        self.zone.as_ref().map(|_| stable_hash(&self.key))
    }

    /// Returns a hash that is the same at all gateways and in all versions.
    ///
    /// The hash is cryptographic, so that nobody can find a key that collides with another client's
    /// key and takes its slots.
    pub(super) fn name(&self) -> u64 {
        let zone = self.zone.as_deref().unwrap_or_default();
        let mut hash = Context::new(&SHA256);
        hash.update(&(zone.len() as u64).to_le_bytes());
        hash.update(zone.as_bytes());
        hash.update(&self.key);
        let hash = hash.finish();
        let first = hash.as_ref().first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(first)
    }
}
