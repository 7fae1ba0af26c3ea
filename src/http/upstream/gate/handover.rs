//! What a gate leaves to the next process, and takes from the one before.

use super::OriginGate;
use crate::limit::{Moment, SavedBackoff, SavedGate};
use crate::time::clock;

/// The state of an origin's gate at the end of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedOriginGate {
    /// Its schedule.
    pub gate: SavedGate,
    /// What is lower than in the file; `None` if nothing is.
    pub backoff: Option<SavedBackoff>,
}

impl OriginGate {
    /// Accepts only requests that have waited in a zone from now on. Those that wait here leave.
    ///
    /// Returns its state at `at`, a moment not long ago.
    pub fn hand_over(&self, at: Moment) -> SavedOriginGate {
        let mut state = self.lock();
        state.is_handed_over = true;
        let backing_off = state.backing_off.as_ref();
        SavedOriginGate {
            gate: state.gate.save(at),
            backoff: backing_off.and_then(|it| it.save(at)),
        }
    }

    /// Continues from what an earlier process saved at `at`, before the first request.
    pub fn restore(&self, saved: &SavedOriginGate, at: Moment) {
        let mut state = self.lock();
        let now = clock::now();
        if let (Some(backing_off), Some(saved)) = (&mut state.backing_off, &saved.backoff) {
            backing_off.restore(saved, at, now);
        }
        // At the rate that is in force from now on.
        state.back_off(&self.metrics, now);
        state.gate.restore(&saved.gate, at);
    }
}
