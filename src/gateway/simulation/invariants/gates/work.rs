use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use limit::Rate;

use super::{Checked, GateId, GateRequest, nanos};
use crate::simulation::claim_call::ClaimCall;
use crate::simulation::scenario::Scenario;

/// How long a request waits at most before its gateway gets each slot that is free, without the way
/// to the store: it claims every 25 ms at least, and what nobody has is granted 15 ms ahead.
const SETTLED: Duration = Duration::from_millis(50);

/// While a gateway has fewer slots than requests that have waited for some time, the store leaves none
/// free; and a request that comes
/// where nobody waits anywhere leaves as soon as the store has answered.
///
/// It is checked where all requests cost one and only the pace keeps them, while nothing fails.
pub(super) struct Work {
    scenario: Rc<Scenario>,
    origins: Vec<Origin>,
    gates: BTreeMap<GateId, Hunger>,
}

#[derive(Default)]
struct Origin {
    /// The slots that were granted, in nanoseconds on the simulation's clock.
    granted: BTreeSet<i64>,
    /// All slots up to this one were looked at.
    checked: Option<i64>,
    /// How many requests wait, at all gateways.
    waiting: u64,
    /// The request that came where nobody waited, and when it has to leave at last.
    alone: Option<(u64, Duration)>,
}

/// When a gateway had too few slots.
#[derive(Default)]
struct Hunger {
    /// Who waits, and since when.
    waiting: BTreeMap<u64, Duration>,
    since: Option<Duration>,
    before: Vec<(Duration, Duration)>,
}

impl Work {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        let origins = scenario.origins.iter().map(|_| Origin::default());
        Self {
            origins: origins.collect(),
            scenario: Rc::clone(scenario),
            gates: BTreeMap::new(),
        }
    }

    pub(super) fn comes(&mut self, request: &GateRequest, held: u64) {
        let (answer, interval) = (self.answer(), self.interval(request.origin));
        let origin = &mut self.origins[request.origin];
        let last = origin.granted.last().copied().unwrap_or(i64::MIN);
        let is_idle = last.saturating_add(nanos(interval)) <= nanos(request.since);
        if let Some((_, until)) = &mut origin.alone {
            // It may be that who came later claims first.
            *until += interval;
        } else if origin.waiting == 0 && is_idle {
            // A claim that tells of nobody may be under way, and is followed by another.
            let until = request.since + 2 * answer + interval + Duration::from_millis(6);
            origin.alone = Some((request.id, until));
        }
        origin.waiting += 1;
        let gate = (request.gateway, request.origin);
        let hunger = self.hunger(gate);
        hunger.waiting.insert(request.id, request.since);
        self.look(gate, held, request.since);
    }

    /// It waits no longer. `passes`: it goes on to the origin.
    pub(super) fn ends(
        &mut self,
        request: &GateRequest,
        held: u64,
        passes: bool,
        now: Duration,
    ) -> Checked {
        let is_checked = self.is_checked(request.origin);
        let origin = &mut self.origins[request.origin];
        origin.waiting = origin.waiting.saturating_sub(1);
        let alone = origin.alone.take_if(|(id, _)| *id == request.id);
        let gate = (request.gateway, request.origin);
        self.hunger(gate).waiting.remove(&request.id);
        self.look(gate, held, now);
        match alone {
            Some((id, until)) if passes && is_checked && now > until => {
                let waited = now.saturating_sub(request.since);
                Err(format!(
                    "request {id} came where nobody waited, and has waited for {waited:?}"
                ))
            }
            _ => Ok(()),
        }
    }

    /// A gate has so many slots now.
    pub(super) fn look(&mut self, gate: GateId, held: u64, now: Duration) {
        let settled = SETTLED + 2 * self.answer();
        let hunger = self.hunger(gate);
        let waiting = hunger.waiting.values();
        let long = waiting.take_while(|since| **since + settled <= now).count();
        let is_hungry = long as u64 > held;
        match (hunger.since, is_hungry) {
            (None, true) => hunger.since = Some(now),
            (Some(since), false) => {
                hunger.before.push((since, now));
                hunger.since = None;
            }
            _ => {}
        }
    }

    /// The store was asked: what it had granted until now is final.
    pub(super) fn claimed(&mut self, call: &ClaimCall, now: Duration) -> Checked {
        let is_checked = self.is_checked(call.origin);
        let origin = &mut self.origins[call.origin];
        let here = nanos(now) - call.now;
        origin
            .granted
            .extend(call.slots.iter().map(|slot| slot + here));
        let interval = nanos(call.in_force.interval() * call.pieces);
        let origin = &self.origins[call.origin];
        let from = origin.checked.unwrap_or(0);
        let past = origin.granted.range(from..nanos(now));
        let past: Vec<i64> = past.copied().collect();
        for pair in past.windows(2) {
            let unused = pair[0] + interval;
            if pair[1] - unused < 2000 || !is_checked {
                continue;
            }
            let unused = Duration::from_nanos(unused.unsigned_abs());
            if let Some(gate) = self.hungry(call.origin, unused) {
                return Err(format!(
                    "the slot at {unused:?} is unused, and gateway {gate} wanted it"
                ));
            }
        }
        if let Some(last) = past.last() {
            self.origins[call.origin].checked = Some(*last);
        }
        Ok(())
    }

    /// A gateway that had too few slots at this moment and shortly before.
    fn hungry(&self, origin: usize, at: Duration) -> Option<usize> {
        let from = at.checked_sub(Duration::from_millis(5))?;
        let of_origin = self.gates.iter().filter(|((_, of), _)| *of == origin);
        let mut hungry = of_origin.filter(|(_, hunger)| {
            let before = || hunger.before.iter().rev();
            hunger.since.is_some_and(|since| since <= from)
                || before().any(|(since, until)| *since <= from && *until >= at)
        });
        hungry.next().map(|((gateway, _), _)| *gateway)
    }

    fn hunger(&mut self, gate: GateId) -> &mut Hunger {
        self.gates.entry(gate).or_default()
    }

    fn interval(&self, origin: usize) -> Duration {
        let rates = self.scenario.origin_rates(origin);
        rates.map(Rate::interval).max().unwrap_or_default()
    }

    /// How long an answer of the store takes at most, also over a new connection.
    fn answer(&self) -> Duration {
        4 * self.scenario.delay.1
    }

    fn is_checked(&self, origin: usize) -> bool {
        let has_one_rate = self.scenario.origin_rates(origin).count() == 1;
        has_one_rate && self.scenario.is_plain(origin)
    }
}
