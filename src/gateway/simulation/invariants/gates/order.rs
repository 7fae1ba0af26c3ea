//! Invariant: first come, first served at a gate.
//!
//! A gate bounds the pace of all requests to an origin. A *lane* is a queue of requests at the gate
//! of one gateway: those of a key and a class, or of a class if keys do not share the gate. A
//! method with the name of an event, such as `arrives`, records the event.

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

/// Waiting requests of a lane.
#[derive(Default)]
struct Waiting {
    /// Numbers of the requests.
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
        self.lanes.retain(|(other, ..), _| *other != host);
    }

    pub(super) fn passes(&mut self, request: &GateRequest, now: Duration) -> Checked {
        let lane = self.lane(request);
        let waiting = self.lanes.entry(lane).or_default();
        waiting.ids.remove(&request.id);
        if let Some((time, by)) = waiting.overtaken
            && time < now
            && request.id < by
        {
            let id = request.id;
            return Err(format!("request {id} goes on after {by}, which came later"));
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
