//! Invariant: every join is answered.
//!
//! A *join* is a request that asks a zone for a slot of its key. The answer is an admission or a
//! rejection. A method with the name of an event, such as `joined`, records the event.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use limit::Cost;

use super::{Checked, Request};
use crate::simulation::scenario::Scenario;
use crate::simulation::world::HostId;

/// Invariant: every join is answered exactly once, and in time.
pub(super) struct Answers {
    scenario: Rc<Scenario>,
    /// Requests without an answer, by number.
    waiting: BTreeMap<u64, Request>,
    /// Costs billed to each zone and key, in requests.
    billed: HashMap<(usize, &'static str), u32>,
}

impl Answers {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            waiting: BTreeMap::new(),
            billed: HashMap::new(),
        }
    }

    pub(super) fn joined(&mut self, request: &Request) {
        self.waiting.insert(request.id, request.clone());
    }

    pub(super) fn answered(&mut self, request: &Request, now: Duration) -> Checked {
        if self.waiting.remove(&request.id).is_none() {
            return Err(format!("request {} was answered twice", request.id));
        }
        self.check_one(request, now)
    }

    pub(super) fn left(&mut self, request: &Request) {
        self.waiting.remove(&request.id);
    }

    pub(super) fn settled(&mut self, request: &Request, cost: Option<Cost>) {
        if let Some(more) = cost.and_then(|cost| cost.above(request.limit.cost)) {
            *self.billed.entry((request.zone, request.key)).or_default() += more.get();
        }
    }

    pub(super) fn died(&mut self, host: HostId) {
        self.waiting.retain(|_, request| request.host != host);
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Checks that no request has waited too long.
    pub(super) fn check(&self, now: Duration) -> Checked {
        let mut waiting = self.waiting.values();
        waiting.try_for_each(|request| self.check_one(request, now))
    }

    /// Checks that a request has not waited too long.
    fn check_one(&self, request: &Request, now: Duration) -> Checked {
        let (waited, most) = (now.saturating_sub(request.since), self.longest(request));
        if waited <= most {
            return Ok(());
        }
        Err(format!(
            "request {} has waited for {waited:?}, more than {most:?}",
            request.id
        ))
    }

    /// Returns the maximum time until a request is answered.
    fn longest(&self, request: &Request) -> Duration {
        let zone = &self.scenario.zones[request.zone];
        // Time until the store or the fallback decides. tokio's timers have whole milliseconds.
        let decided = self.scenario.timeout + Duration::from_millis(2);
        if !zone.algorithm.queues() {
            return decided;
        }
        let billed = self.billed.get(&(request.zone, request.key)).copied();
        let billed = billed.unwrap_or(0);
        decided
            + self
                .scenario
                .longest_wait(request.zone, request.key, billed)
    }
}
