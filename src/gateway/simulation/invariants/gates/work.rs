//! Invariant: no slot is free while requests wait.
//!
//! A gate bounds the pace of all requests to an origin. Gateways claim its *slots*, the instants at
//! which requests leave, from the store. A method with the name of an event, such as `arrives`,
//! records the event.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use limit::Rate;

use super::{Checked, GateId, GateRequest, nanos};
use crate::simulation::claim_call::ClaimCall;
use crate::simulation::scenario::Scenario;

/// Wait after which a request's gateway gets each free slot, without the latency of the store.
///
/// A gateway claims at least every 25 ms, and unclaimed slots are granted 15 ms ahead.
const SETTLED: Duration = Duration::from_millis(50);

/// Invariant: no slot stays free while a gateway has more waiters than slots.
///
/// Only waiters count that have waited for some time. In addition, a request that arrives while
/// none waits leaves as soon as the store has replied. Both are checked while nothing fails, if all
/// requests cost one and only the pace delays them.
pub(super) struct Work {
    scenario: Rc<Scenario>,
    origins: Vec<Origin>,
    gates: BTreeMap<GateId, SlotShortage>,
}

/// State of an origin.
#[derive(Default)]
struct Origin {
    /// Granted slots, in nanoseconds on the simulation's clock.
    granted: BTreeSet<i64>,
    /// All slots up to this one have been checked.
    checked: Option<i64>,
    /// Number of waiting requests at all gateways.
    waiting: u64,
    /// A request that arrived while none waited, and its latest departure.
    alone: Option<(u64, Duration)>,
}

/// Period in which a gateway had too few slots.
#[derive(Default)]
struct SlotShortage {
    /// Waiting requests, each with the time since which it waits.
    waiting: BTreeMap<u64, Duration>,
    /// Begin of the current period; `None` if the gateway has enough slots.
    since: Option<Duration>,
    /// Earlier periods: begin and end.
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

    pub(super) fn arrives(&mut self, request: &GateRequest, held: u64) {
        let (answer, interval) = (self.reply_time(), self.interval(request.origin));
        let origin = &mut self.origins[request.origin];
        let last = origin.granted.last().copied().unwrap_or(i64::MIN);
        let is_idle = last.saturating_add(nanos(interval)) <= nanos(request.since);
        if let Some((_, until)) = &mut origin.alone {
            // A later request's gateway may claim first.
            *until += interval;
        } else if origin.waiting == 0 && is_idle {
            // A claim without waiters may be under way, and is followed by another one.
            let until = request.since + 2 * answer + interval + Duration::from_millis(6);
            origin.alone = Some((request.id, until));
        }
        origin.waiting += 1;
        let gate = (request.gateway, request.origin);
        let shortage = self.shortage(gate);
        shortage.waiting.insert(request.id, request.since);
        self.note_held(gate, held, request.since);
    }

    /// Records that a request waits no longer. `passes`: it goes on to the origin.
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
        self.shortage(gate).waiting.remove(&request.id);
        self.note_held(gate, held, now);
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

    /// Records the number of slots that a gate has.
    pub(super) fn note_held(&mut self, gate: GateId, held: u64, now: Duration) {
        let settled = SETTLED + 2 * self.reply_time();
        let shortage = self.shortage(gate);
        let waiting = shortage.waiting.values();
        let long = waiting.take_while(|since| **since + settled <= now).count();
        let is_short = long as u64 > held;
        match (shortage.since, is_short) {
            (None, true) => shortage.since = Some(now),
            (Some(since), false) => {
                shortage.before.push((since, now));
                shortage.since = None;
            }
            _ => {}
        }
    }

    /// Records a claim: earlier grants of the store are final.
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
            if let Some(gate) = self.gateway_with_shortage(call.origin, unused) {
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

    /// Returns a gateway that had too few slots at this time and shortly before.
    fn gateway_with_shortage(&self, origin: usize, at: Duration) -> Option<usize> {
        let from = at.checked_sub(Duration::from_millis(5))?;
        let gates = self.gates.iter();
        let of_origin = gates.filter(|((_, other), _)| *other == origin);
        let mut short = of_origin.filter(|(_, shortage)| {
            let before = || shortage.before.iter().rev();
            shortage.since.is_some_and(|since| since <= from)
                || before().any(|(since, until)| *since <= from && *until >= at)
        });
        short.next().map(|((gateway, _), _)| *gateway)
    }

    /// Returns the shortage of a gate.
    fn shortage(&mut self, gate: GateId) -> &mut SlotShortage {
        self.gates.entry(gate).or_default()
    }

    /// Returns the longest interval of an origin's slots.
    fn interval(&self, origin: usize) -> Duration {
        let rates = self.scenario.origin_rates(origin);
        rates.map(Rate::interval).max().unwrap_or_default()
    }

    /// Returns the maximum time of a store's reply, including a new connection.
    fn reply_time(&self) -> Duration {
        4 * self.scenario.delay.1
    }

    /// Returns whether this invariant holds for an origin.
    fn is_checked(&self, origin: usize) -> bool {
        let has_one_rate = self.scenario.origin_rates(origin).count() == 1;
        has_one_rate && self.scenario.is_plain(origin)
    }
}
