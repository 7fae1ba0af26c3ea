//! Invariant: a gateway that backs off takes only part of its slots.
//!
//! A gate bounds the pace of all requests to an origin. Gateways claim its *slots*, the instants at
//! which requests leave, from the store. A gateway *backs off* while the origin is slow or fails:
//! then it takes only a share of its slots. A method with the name of an event, such as `claimed`,
//! records the event.

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
/// At this pace, slots are one interval divided by its share apart, as of the claim. The gateway
/// does not lose what it could not use: its next slot is due at most one such distance before the
/// first slot that it can use. Slots are whole intervals apart, so a slot may come one interval
/// before it is due.
#[derive(Default)]
pub(in crate::simulation) struct Turns {
    backing_off: BTreeMap<Claimer, BackingOff>,
    /// Effective rate, by origin.
    rates: BTreeMap<usize, Rate>,
}

/// An origin, and the process that claims.
type Claimer = (usize, Vec<u8>);

/// A gateway that backs off.
struct BackingOff {
    /// Time of the last claim.
    claimed_at: i64,
    /// Earliest time of the last slot, in nanoseconds after that claim; `None` if unknown.
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
            claimed_at: call.now,
            last: None,
        });
        let passed = (call.now - backing_off.claimed_at) as f64;
        let known = backing_off
            .last
            .filter(|_| (0.0..FORGOTTEN_AFTER).contains(&passed));
        let interval = 1e9 / call.in_force.per_second() * f64::from(call.pieces);
        // Distance of slots at the reduced pace.
        let apart = interval / (call.part * call.part_taken);
        let earliest = call.lead.min(100_000.0) * 1000.0 - apart;
        let mut last = known.map(|last| last - passed);
        for granted in &call.slots {
            let ahead = (granted - call.now) as f64;
            let turn = last.map_or(earliest, |last| earliest.max(last + apart));
            if ahead + interval + EXACT < turn {
                let early = (turn - ahead) / 1e6;
                return Err(format!(
                    "a gateway that backs off was granted a slot {early:.3} ms before its turn"
                ));
            }
            last = Some(turn);
        }
        (backing_off.claimed_at, backing_off.last) = (call.now, last);
        Ok(())
    }

    /// Forgets everything, because the store has lost data or its clock has jumped.
    pub(in crate::simulation) fn forget(&mut self) {
        self.backing_off.clear();
    }
}
