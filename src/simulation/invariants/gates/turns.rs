use std::collections::BTreeMap;

use super::Checked;
use crate::simulation::claim_call::ClaimCall;

/// How far ahead slots are granted where answers take no time, in seconds.
const SPAN: f64 = 0.05;

/// A gateway that backs off takes only that part of its turns.
#[derive(Default)]
pub(super) struct Turns {
    backing: BTreeMap<(usize, Vec<u8>), Backing>,
    /// How long answers take to the gateway that is furthest away, in seconds.
    furthest: f64,
}

/// A gateway that backs off.
struct Backing {
    /// When it last claimed, and its part of the rate in requests a second then.
    now: i64,
    rate: f64,
    /// How many it might have got, and how many it got.
    allowed: f64,
    granted: f64,
}

impl Turns {
    pub(super) fn claimed(&mut self, call: &ClaimCall) -> Checked {
        self.furthest = self.furthest.max(call.lead.min(100_000.0) / 1e6);
        let gate = (call.origin, call.gateway.clone());
        if call.part_taken >= 1.0 {
            self.backing.remove(&gate);
            return Ok(());
        }
        let rate = call.part * call.part_taken * call.in_force.per_second();
        let ahead = SPAN + 3.0 * self.furthest;
        let backing = self.backing.entry(gate).or_insert(Backing {
            now: call.now,
            rate,
            allowed: 0.0,
            granted: 0.0,
        });
        #[allow(clippy::cast_precision_loss)]
        let passed = (call.now - backing.now).max(0) as f64 / 1e9;
        backing.allowed += passed * backing.rate.max(rate);
        #[allow(clippy::cast_precision_loss)]
        let granted = call.slots.len() as f64 * f64::from(call.pieces);
        backing.granted += granted;
        (backing.now, backing.rate) = (call.now, rate);
        // One turn that came late is made up, and the first may be at once.
        let most = backing.allowed + ahead * rate + 3.0 * f64::from(call.pieces);
        if backing.granted > most {
            return Err(format!(
                "{} slots were granted to a gateway that backs off, more than {most:.1}",
                backing.granted
            ));
        }
        Ok(())
    }
}
