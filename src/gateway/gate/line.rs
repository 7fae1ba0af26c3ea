//! The line of a request that has left, for another one that takes over from it.

use std::sync::Arc;

use limit::{GatePosition, Moment, Share, stable_hash};
use ring::digest::{Context, SHA256};
use tokio::sync::oneshot;

use super::alarms::Alarms;
use super::{Granted, OriginGate, Waiting};
use crate::time::clock;
use crate::zone::Key;

/// The line of a request that has left.
///
/// If it gets no answer, another one that wants the same leaves ahead of the queue.
#[derive(Clone, Debug)]
pub struct Line {
    gate: Arc<OriginGate>,
    /// The number of the departure.
    number: u64,
    /// What the request counts for.
    cost: u32,
}

/// A place ahead of the queue, for a request of any thread. It is given up when this is dropped.
#[derive(Debug)]
pub struct Reserved {
    gate: Arc<OriginGate>,
    position: GatePosition,
    /// `None` once it is taken.
    turn: Option<oneshot::Receiver<Granted>>,
    since: Moment,
}

impl Line {
    pub(super) fn new(gate: &Arc<OriginGate>, number: u64, cost: u32) -> Self {
        Self {
            gate: Arc::clone(gate),
            number,
            cost,
        }
    }

    /// Reserves a place ahead of the queue. `None`: the gateway stops, or too many wait there.
    pub fn reserve(&self) -> Option<Reserved> {
        let mut state = self.gate.lock();
        let now = clock::now();
        // The key of the request that takes it is not known yet, and charged for nothing.
        let key = KeyAtGate::default();
        state.check_room_at_head(&key, now).ok()?;
        let (sender, turn) = oneshot::channel();
        let position = (state.gate).join_at_head(self.number, key, self.cost, now, sender);
        state.note_blocked(now);
        drop(state);
        Some(Reserved {
            gate: Arc::clone(&self.gate),
            position,
            turn: Some(turn),
            since: now,
        })
    }
}

impl Reserved {
    /// Lets a request of this thread wait at the place.
    ///
    /// Until then the alarms of other threads grant its turn.
    pub fn take(mut self) -> Option<Waiting> {
        let turn = self.turn.take()?;
        let mut state = self.gate.lock();
        let now = clock::now();
        let released = state.release(&self.gate.metrics, now);
        let alarms = Alarms::join(&self.gate, &mut state, now);
        drop(state);
        self.gate.grant(released);
        Some(Waiting {
            gate: Arc::clone(&self.gate),
            share: Share::of(KeyAtGate::default()),
            position: self.position.clone(),
            turn,
            since: self.since,
            held_since: None,
            alarms,
            has_left: false,
        })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.turn.is_some() {
            self.gate.leave(&self.position);
        }
    }
}

/// The key by which a request shares a gate.
///
/// A reload may give the gate the keys of another zone while requests wait. Their keys stay those
/// of the zone by which they joined: its plans apply, and it says how the keys are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyAtGate {
    /// The name of the zone; `None` if the origin names none.
    pub zone: Option<Arc<str>>,
    /// The key, empty for all requests without a zone.
    pub key: Key,
}

impl KeyAtGate {
    /// What the back-off knows it by; `None`: the origin names no zone.
    pub(super) fn hash(&self) -> Option<u64> {
        self.zone.as_ref().map(|_| stable_hash(&self.key))
    }

    /// What it hashes to, the same at all gateways and in all versions.
    ///
    /// It is cryptographic, so that nobody finds a key that takes another one's turns.
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
