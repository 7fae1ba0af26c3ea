//! State of a gate that passes from one process to the next, at a restart or an upgrade.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use limit::{DestinationId, ExpectedRequest, Moment, SavedBackoff, SavedGate};
use serde::{Deserialize, Serialize};

use super::OriginGate;
use crate::time::clock;

/// State of an origin's gate at the end of its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedOriginGate {
    /// Schedule of the gate.
    #[serde(flatten)]
    pub gate: SavedGate,
    /// State of the back-off; `None` if nothing is lowered.
    pub backoff: Option<SavedBackoff>,
}

/// Returns a new number of a gate; `None` if this process has had too many gates.
///
/// A waiter in a zone has the number of the gate that it joins next. So the gate's state can be
/// saved with the requests that will still come from the zones.
pub(super) fn next_destination() -> Option<DestinationId> {
    static LAST: AtomicU16 = AtomicU16::new(0);
    let next = |last: u16| last.checked_add(1);
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    NonZeroU16::new(last.ok()?.checked_add(1)?).map(DestinationId)
}

impl OriginGate {
    /// Returns the number of this gate, for waiters in zones.
    pub fn destination(&self) -> Option<DestinationId> {
        self.destination
    }

    /// Stops accepting requests, except ones that have waited in a zone. Waiters here still depart.
    ///
    /// Returns the state at `at`, an instant shortly before now. `to_come`: requests that still
    /// wait in a zone and then come here. An override ends, because the next process follows the
    /// file.
    pub fn hand_over(self: &Arc<Self>, at: Moment, to_come: &[ExpectedRequest]) -> SavedOriginGate {
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

    /// Continues from the state that an earlier process saved at `at`. Call it before any request.
    pub fn restore(&self, saved: &SavedOriginGate, at: Moment) {
        let mut state = self.lock();
        let now = clock::now();
        if let (Some(backing_off), Some(saved)) = (&mut state.backing_off, &saved.backoff) {
            backing_off.backoff.restore(saved, at, now);
        }
        // Applies the back-off first, so that the schedule continues at the effective rate.
        state.back_off(&self.metrics, now);
        state.gate.restore(&saved.gate, at);
    }
}
