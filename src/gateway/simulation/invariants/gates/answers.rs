//! Invariant: every request at a shared gate is answered.
//!
//! A gate bounds the pace of all requests to an origin. A request waits there until it gets a slot,
//! is rejected, or its client leaves. A method with the name of an event, such as `arrives`,
//! records the event.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::{Checked, GateRequest};
use crate::simulation::scenario::Scenario;
use crate::simulation::world::HostId;

/// Invariant: every request at a gate is answered exactly once, and within its maximum wait.
pub(in crate::simulation) struct Answers {
    scenario: Rc<Scenario>,
    /// Requests without an answer, by number.
    waiting: BTreeMap<u64, GateRequest>,
    /// Time by which all requests must be answered, once it is known.
    over: Option<Duration>,
    /// Duration by which the store's clock was set back.
    set_back: Duration,
}

impl Answers {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            waiting: BTreeMap::new(),
            over: None,
            set_back: Duration::ZERO,
        }
    }

    pub(super) fn arrives(&mut self, request: &GateRequest) {
        self.waiting.insert(request.id, request.clone());
    }

    pub(super) fn answered(&mut self, request: &GateRequest, now: Duration) -> Checked {
        if self.waiting.remove(&request.id).is_none() {
            return Err(format!("request {} was answered twice", request.id));
        }
        self.check_one(request, now)
    }

    pub(super) fn left(&mut self, request: &GateRequest) {
        self.waiting.remove(&request.id);
    }

    pub(super) fn died(&mut self, host: HostId) {
        self.waiting.retain(|_, request| request.host != host);
    }

    pub(in crate::simulation) fn jumped(&mut self, micros: i64) {
        if micros < 0 {
            self.set_back += Duration::from_micros(micros.unsigned_abs());
        }
    }

    pub(in crate::simulation) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Records that nothing fails from now on, so all waiters get their slots.
    pub(in crate::simulation) fn healed(&mut self, now: Duration) {
        let mut longest = Duration::ZERO;
        for (origin, plan) in self.scenario.origins.iter().enumerate() {
            let waiting = self.waiting.values();
            let waiting = waiting.filter(|request| request.origin == origin);
            let costs: u32 = waiting.map(|request| request.cost.get()).sum();
            let rates = self.scenario.origin_rates(origin);
            let interval = rates.map(limit::Rate::interval).max();
            // Maximum time for a unit of cost.
            let mut each = interval.unwrap_or_default();
            if plan.backs_off {
                // The rate falls to a tenth at most.
                each *= 10;
            }
            if plan.max_in_flight.get().is_some() {
                each += Duration::from_millis(self.scenario.crowd.takes);
            }
            longest = longest.max(2 * each * (costs + 1));
        }
        // Time until the store is tried, and other gateways are back.
        let back = Duration::from_secs(4);
        self.over = Some(now + longest + back + self.set_back);
    }

    /// Checks that no request has waited too long.
    pub(in crate::simulation) fn check(&self, now: Duration) -> Checked {
        let mut waiting = self.waiting.values();
        waiting.try_for_each(|request| self.check_one(request, now))?;
        match (self.over, self.waiting.keys().next()) {
            (Some(over), Some(first)) if now > over => {
                let many = self.waiting.len();
                Err(format!("request {first} and {many} others wait for ever"))
            }
            _ => Ok(()),
        }
    }

    fn check_one(&self, request: &GateRequest, now: Duration) -> Checked {
        let waited = now.saturating_sub(request.since);
        // A slot is given out up to a millisecond early, and tokio's timers have whole
        // milliseconds.
        let most = self.scenario.origins[request.origin].queue_timeout + Duration::from_millis(3);
        if waited <= most {
            return Ok(());
        }
        Err(format!(
            "request {} has waited for {waited:?}, more than {most:?}",
            request.id
        ))
    }
}
