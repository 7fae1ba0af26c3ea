use std::collections::BTreeMap;

use limit::Rate;

use super::Checked;
use crate::simulation::claim_call::ClaimCall;

/// How long a gateway is known that does not claim, in nanoseconds.
const GONE: f64 = 5e9;
/// How exact the times of the store are, in nanoseconds.
const EXACT: f64 = 2000.0;

/// A gateway that backs off takes only that part of its turns.
///
/// Its turns are the time of a slot over its part apart, as its part is at the claim. One that came
/// late is made up: so a turn is not earlier than one such span before what the gateway can use.
/// And a slot is a whole one: up to a slot before its turn.
#[derive(Default)]
pub(in crate::simulation) struct Turns {
    backing: BTreeMap<Name, Backing>,
    /// The rate in force: of each origin.
    rates: BTreeMap<usize, Rate>,
}

/// An origin, and which process claims.
type Name = (usize, Vec<u8>);

/// A gateway that backs off.
struct Backing {
    /// When it last claimed.
    now: i64,
    /// Its last turn at the earliest, in nanoseconds from then on; `None`: not known.
    last: Option<f64>,
}

impl Turns {
    pub(super) fn claimed(&mut self, call: &ClaimCall) -> Checked {
        let before = self.rates.insert(call.origin, call.in_force);
        if before.is_some_and(|before| before != call.in_force) {
            // Turns are counted in slots, and these have other times now.
            self.backing.retain(|(origin, _), _| *origin != call.origin);
        }
        let gate = (call.origin, call.gateway.clone());
        if call.part_taken >= 1.0 {
            self.backing.remove(&gate);
            return Ok(());
        }
        let backing = self.backing.entry(gate).or_insert(Backing {
            now: call.now,
            last: None,
        });
        let passed = (call.now - backing.now) as f64;
        let known = backing.last.filter(|_| (0.0..GONE).contains(&passed));
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
        (backing.now, backing.last) = (call.now, last);
        Ok(())
    }

    /// The store has lost data, or its clock has jumped: nothing is known of turns.
    pub(in crate::simulation) fn forget(&mut self) {
        self.backing.clear();
    }
}
