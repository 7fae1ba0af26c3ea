//! Invariant: gateways share the schedule again after an outage.
//!
//! A gateway that cannot reach the store admits requests *alone*, by a schedule of its own. A
//! method with the name of an event, such as `departed`, records the event.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::{Checked, Request, is_alone};
use crate::simulation::scenario::Scenario;
use crate::zone::Charge;

/// Invariant: after an outage, requests admitted alone get slots of the shared schedule.
///
/// A key notices the store's return when the first of these requests is due. Requests that are due
/// before the store has replied still leave without it.
pub(super) struct Sharing {
    scenario: Rc<Scenario>,
    /// Gateways that have reached the store again.
    back: BTreeMap<usize, Since>,
}

/// First departure of a request that was admitted alone, by zone and key.
type Since = BTreeMap<(usize, &'static str), Duration>;

impl Sharing {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            back: BTreeMap::new(),
        }
    }

    pub(super) fn goes_alone(&mut self, gateway: usize) {
        self.back.remove(&gateway);
    }

    pub(super) fn is_back(&mut self, gateway: usize) {
        self.back.insert(gateway, BTreeMap::new());
    }

    pub(super) fn departed(&mut self, request: &Request, charge: Charge, now: Duration) -> Checked {
        let queues = self.scenario.zones[request.zone].algorithm.queues();
        let Some(back) = self.back.get_mut(&request.gateway) else {
            return Ok(());
        };
        if !queues || !is_alone(charge) {
            return Ok(());
        }
        // A grace of three timeouts of the store begins at the first departure: until the store has
        // replied, further requests of the key may be due.
        let first = *back.entry((request.zone, request.key)).or_insert(now);
        if now.saturating_sub(first) <= 3 * self.scenario.timeout {
            return Ok(());
        }
        Err(format!(
            "request {} departs alone, long after the store is back",
            request.id
        ))
    }
}
