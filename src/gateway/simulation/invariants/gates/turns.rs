//! Invariant: a gateway that backs off takes only part of its slots.

use std::collections::BTreeMap;

use limit::Rate;

use super::Checked;
use crate::simulation::claim_call::ClaimCall;

/// Time after which a gateway that does not claim is forgotten, in nanoseconds.
const FORGOTTEN_AFTER: f64 = 5e9;
/// Precision of the store's times, in nanoseconds.
const EXACT: f64 = 2000.0;

/// Invariant: a gateway that backs off takes slots only at its reduced pace.
///
/// Its pace has one slot per interval divided by its share, as of the claim. A late slot is made
/// up: a slot is due at most one such interval before the first slot that the gateway can use.
/// Slots are whole intervals, so a slot may come up to one interval before it is due.
#[derive(Default)]
pub(in crate::simulation) struct Turns {
    backing_off: BTreeMap<Name, BackingOff>,
    /// Effective rate, by origin.
    rates: BTreeMap<usize, Rate>,
}

/// An origin, and the process that claims.
type Name = (usize, Vec<u8>);

/// A gateway that backs off.
struct BackingOff {
    /// Time of its last claim.
    now: i64,
    /// Earliest time of its last slot, in nanoseconds from then; `None` if unknown.
    last: Option<f64>,
}

impl Turns {
    pub(super) fn claimed(&mut self, call: &ClaimCall) -> Checked {
        let before = self.rates.insert(call.origin, call.in_force);
        if before.is_some_and(|before| before != call.in_force) {
            // Times are counted in slots, and the slots have other times now.
            self.backing_off
                .retain(|(origin, _), _| *origin != call.origin);
        }
        let gate = (call.origin, call.gateway.clone());
        if call.part_taken >= 1.0 {
            self.backing_off.remove(&gate);
            return Ok(());
        }
        let backing_off = self.backing_off.entry(gate).or_insert(BackingOff {
            now: call.now,
            last: None,
        });
        let passed = (call.now - backing_off.now) as f64;
        let known = backing_off
            .last
            .filter(|_| (0.0..FORGOTTEN_AFTER).contains(&passed));
        let slot = 1e9 / call.in_force.per_second() * f64::from(call.pieces);
        let apart = slot / (call.part * call.part_taken);
        let earliest = call.lead.min(100_000.0) * 1000.0 - apart;
        let mut last = known.map(|last| last - passed);
        for at in &call.slots {
            let at = (at - call.now) as f64;
            let turn = last.map_or(earliest, |last| earliest.max(last + apart));
            if at + slot + EXACT < turn {
                let early = (turn - at) / 1e6;
                return Err(format!(
                    "a gateway that backs off was granted a slot {early:.3} ms before its turn"
                ));
            }
            last = Some(turn);
        }
        (backing_off.now, backing_off.last) = (call.now, last);
        Ok(())
    }

    /// Forgets everything, because the store has lost data or its clock has jumped.
    pub(in crate::simulation) fn forget(&mut self) {
        self.backing_off.clear();
    }
}
