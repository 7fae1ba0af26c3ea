//! Invariant: first come, first served in a zone.

use std::collections::HashMap;
use std::rc::Rc;

use limit::Delay;

use super::{Checked, Request};
use crate::simulation::scenario::{Fault, Scenario};
use crate::simulation::world::HostId;
use crate::zone::{Charge, Grant};

/// Invariant: first come, first served at a gateway, per key and `delay`.
pub(super) struct Order {
    scenario: Rc<Scenario>,
    /// Last departed request, by host, zone, key and `delay`.
    last: HashMap<(usize, usize, &'static str, u32), (HostId, u64)>,
}

impl Order {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            last: HashMap::new(),
        }
    }

    pub(super) fn departed(&mut self, request: &Request, grant: &Grant) -> Checked {
        // If requests pass while the store is out, none waits behind another.
        let Delay::Above(delay) = request.limit.delay else {
            return Ok(());
        };
        let queues = self.scenario.zones[request.zone].algorithm.queues();
        // A script that is flushed while batches are under way is sent again, behind later ones.
        let mut faults = self.scenario.faults.iter();
        let is_flushed = faults.any(|(_, fault)| matches!(fault, Fault::Flush));
        if !queues || is_flushed || grant.charge == Charge::Nothing {
            return Ok(());
        }
        let lane = (request.gateway, request.zone, request.key, delay);
        let last = self.last.insert(lane, (request.host, request.id));
        match last {
            Some((host, last)) if host == request.host && last > request.id => Err(format!(
                "request {} departs behind {last}, which came later",
                request.id
            )),
            _ => Ok(()),
        }
    }
}
