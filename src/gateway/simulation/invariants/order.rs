//! Invariant: first come, first served in a zone.
//!
//! A zone limits the rate of each key. `delay` is a setting of the route: how full the bucket of a
//! key is before requests wait. A method with the name of an event, such as `departed`, records the
//! event.

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
    /// Host and number of the last departed request, by gateway, zone, key and `delay`.
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
        // A request with `nodelay` does not wait.
        let Delay::Above(delay) = request.limit.delay else {
            return Ok(());
        };
        let queues = self.scenario.zones[request.zone].algorithm.queues();
        // A batch whose script was flushed is sent again, after later batches.
        let mut faults = self.scenario.faults.iter();
        let is_flushed = faults.any(|(_, fault)| matches!(fault, Fault::Flush));
        // While the store is out and requests pass, no request waits for another one.
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
