//! Invariant: first come, first served at a gate.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use super::{Checked, GateRequest};
use crate::simulation::scenario::Scenario;
use crate::simulation::world::HostId;

/// Invariant: first come, first served among the requests of a key and class at a gateway.
pub(super) struct Order {
    scenario: Rc<Scenario>,
    lanes: BTreeMap<Lane, Waiting>,
}

/// Host, origin, class and key.
type Lane = (HostId, usize, usize, usize);

#[derive(Default)]
struct Waiting {
    ids: BTreeSet<u64>,
    /// A request that left before earlier ones, with its time.
    ///
    /// The earlier ones must leave at the same time.
    overtaken: Option<(Duration, u64)>,
}

impl Order {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            lanes: BTreeMap::new(),
        }
    }

    pub(super) fn arrives(&mut self, request: &GateRequest) {
        let lane = self.lane(request);
        self.lanes.entry(lane).or_default().ids.insert(request.id);
    }

    pub(super) fn left(&mut self, request: &GateRequest) {
        let lane = self.lane(request);
        self.lanes.entry(lane).or_default().ids.remove(&request.id);
    }

    pub(super) fn died(&mut self, host: HostId) {
        self.lanes.retain(|(of, ..), _| *of != host);
    }

    pub(super) fn passes(&mut self, request: &GateRequest, now: Duration) -> Checked {
        let lane = self.lane(request);
        let waiting = self.lanes.entry(lane).or_default();
        waiting.ids.remove(&request.id);
        if let Some((at, by)) = waiting.overtaken
            && at < now
            && request.id < by
        {
            let id = request.id;
            return Err(format!(
                "request {id} goes on behind {by}, which came later"
            ));
        }
        if waiting.ids.first().is_some_and(|first| *first < request.id) {
            waiting.overtaken = Some((now, request.id));
        }
        Ok(())
    }

    fn lane(&self, request: &GateRequest) -> Lane {
        let is_fair = self.scenario.origins[request.origin].is_fair;
        let key = if is_fair { request.key } else { 0 };
        (request.host, request.origin, request.class, key)
    }
}
