//! What a gate leaves to the next process, and takes from the one before.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use limit::{Moment, Onward, SavedBackoff, SavedGate, ToCome};
use serde::{Deserialize, Serialize};

use super::OriginGate;
use crate::time::clock;

/// The state of an origin's gate at the end of its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedOriginGate {
    /// Its schedule.
    #[serde(flatten)]
    pub gate: SavedGate,
    /// What is lower than in the file; `None` if nothing is.
    pub backoff: Option<SavedBackoff>,
}

/// The name of a gate for those that wait in a zone before it; `None` if this process has had too
/// many gates.
pub(super) fn next_onward() -> Option<Onward> {
    static LAST: AtomicU16 = AtomicU16::new(0);
    let next = |last: u16| last.checked_add(1);
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    NonZeroU16::new(last.ok()?.checked_add(1)?).map(Onward)
}

impl OriginGate {
    /// What those are told by who go on to this gate.
    pub fn onward(&self) -> Option<Onward> {
        self.onward
    }

    /// Accepts only requests that have waited in a zone from now on. Those that wait here leave.
    ///
    /// Returns its state at `at`, a moment not long ago. `to_come` are those that still wait in a
    /// zone. An override ends: the next process follows the file.
    pub fn hand_over(self: &Arc<Self>, at: Moment, to_come: &[ToCome]) -> SavedOriginGate {
        self.set_override(None);
        let mut state = self.lock();
        state.is_handed_over = true;
        state.leave_pool(clock::now());
        let backing_off = state.backing_off.as_ref();
        SavedOriginGate {
            gate: state.gate.save(at, to_come),
            backoff: backing_off.and_then(|it| it.backoff.save(at)),
        }
    }

    /// Continues from what an earlier process saved at `at`, before the first request.
    pub fn restore(&self, saved: &SavedOriginGate, at: Moment) {
        let mut state = self.lock();
        let now = clock::now();
        if let (Some(backing_off), Some(saved)) = (&mut state.backing_off, &saved.backoff) {
            backing_off.backoff.restore(saved, at, now);
        }
        // At the rate that is in force from now on.
        state.back_off(&self.metrics, now);
        state.gate.restore(&saved.gate, at);
    }
}
