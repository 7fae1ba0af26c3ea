//! The line of a request that has left, for another one that takes over from it.

use std::sync::Arc;

use limit::{GatePosition, Moment, Share};
use tokio::sync::oneshot;

use super::alarms::Alarms;
use super::{Granted, KeyAtGate, OriginGate, Waiting};
use crate::time::clock;

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
