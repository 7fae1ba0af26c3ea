//! Invariant: the store's charges match the use.
//!
//! The store charges the cost of an admitted request to its key. A *lease* is the slots of a busy
//! key that a gateway takes ahead. A method with the name of an event, such as `departed`, records
//! the event.

use std::collections::BTreeMap;
use std::rc::Rc;

use limit::Cost;

use super::{Checked, Request};
use crate::simulation::scenario::Scenario;
use crate::simulation::script_call::ScriptCall;

/// Invariant: the store charged exactly what was used.
///
/// Checked at the end, if no fault happened and all requests of a zone cost the same: otherwise a
/// request may take the slots of one that costs more, and the rest is lost. Slots of leases may
/// expire: then less is used than was charged, but never more.
pub(super) struct Books {
    scenario: Rc<Scenario>,
    /// Charges in the store that were not refunded, by zone.
    charged: BTreeMap<usize, i64>,
    /// Final costs of departed requests, by zone.
    used: BTreeMap<usize, i64>,
}

impl Books {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            charged: BTreeMap::new(),
            used: BTreeMap::new(),
        }
    }

    pub(super) fn store_ran(&mut self, call: &ScriptCall) {
        for entry in &call.entries {
            let Some((zone, _)) = entry.zone_and_key() else {
                continue;
            };
            let charged = self.charged.entry(zone).or_default();
            let cost = i64::from(entry.cost);
            if call.is_join() {
                *charged += i64::from(entry.done) * cost;
            } else if call.is_refund() {
                // Counted whether or not the refund succeeded.
                *charged -= i64::from(entry.count) * cost;
            }
        }
    }

    pub(super) fn departed(&mut self, request: &Request) {
        let used = self.used.entry(request.zone).or_default();
        *used += i64::from(request.limit.cost.get());
    }

    pub(super) fn settled(&mut self, request: &Request, cost: Option<Cost>) {
        let used = self.used.entry(request.zone).or_default();
        *used += i64::from(cost.map_or(0, Cost::get)) - i64::from(request.limit.cost.get());
    }

    /// Checks that charges and use are equal at the end.
    pub(super) fn check(&self) -> Checked {
        if !self.scenario.is_calm() {
            return Ok(());
        }
        for (zone, plan) in self.scenario.zones.iter().enumerate() {
            let sum = |book: &BTreeMap<usize, i64>| book.get(&zone).copied().unwrap_or(0);
            let (charged, used) = (sum(&self.charged), sum(&self.used));
            let is_lost = charged > used && plan.leases_may_expire();
            if charged != used && !is_lost && !plan.has_mixed_costs() {
                let name = &plan.name;
                return Err(format!(
                    "{charged} were charged for {name}, and {used} used"
                ));
            }
        }
        Ok(())
    }
}
