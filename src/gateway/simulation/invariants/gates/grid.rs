//! Invariant: the store grants the slots of a gate (the grid) once, in time, and to the right
//! gateway.
//!
//! A gate bounds the pace of all requests to an origin. Gateways claim its *slots*, the instants at
//! which requests leave, from the store. They are an interval of the rate apart. A method with the
//! name of an event, such as `claimed`, records the event.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use limit::Rate;

use super::reported_keys::ReportedKeys;
use super::{Checked, nanos};
use crate::simulation::claim_call::ClaimCall;
use crate::simulation::scenario::Scenario;

/// Time after which a gateway that does not claim is forgotten, in nanoseconds.
const FORGOTTEN_AFTER: i64 = 5_000_000_000;
/// Time without a claim after which the waiters of a gateway do not count, in nanoseconds.
const SILENT: i64 = 200_000_000;
/// Time that slots are granted ahead if replies take no time, in nanoseconds.
const SPAN: i64 = 50_000_000;
/// Upper bound of how far ahead slots are granted. Beyond it, the clock was set back.
const MAX_AHEAD: i64 = 1_000_000_000;
/// Precision of the store's times, in nanoseconds.
const EXACT: i64 = 1000;

/// Invariant: the store grants each slot once, an interval after the previous one, never late.
///
/// It also reports to each gateway its share of all waiters.
pub(in crate::simulation) struct Grid {
    origins: Vec<State>,
}

/// State of a grid.
#[derive(Default)]
struct State {
    /// Slots granted since the store last lost its data.
    granted: BTreeSet<i64>,
    /// Gateways that have claimed, by the name in their claims.
    known: BTreeMap<Vec<u8>, KnownGateway>,
    /// Rate of the newest file, and its time; `None` if unknown.
    rate: Option<(Rate, f64)>,
    /// Whether the store has lost data.
    has_forgotten: bool,
    /// Keys that gateways have reported.
    keys: ReportedKeys,
    /// Longest round trip that a gateway has reported, in microseconds.
    max_lead: f64,
}

/// A gateway that has claimed.
struct KnownGateway {
    /// Number of the gateway.
    gateway: usize,
    /// Time of the last claim.
    last_claim: i64,
    /// Whether that was before the store last lost its data.
    is_forgotten: bool,
    /// Waiting classes, as in the last claim: name, weight, sum of the weights of its keys.
    classes: Vec<(u32, f64, f64)>,
}

impl Grid {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        let origins = scenario.origins.iter().map(|_| State::default());
        Self {
            origins: origins.collect(),
        }
    }

    pub(in crate::simulation) fn store_forgot(&mut self) {
        for origin in &mut self.origins {
            origin.granted.clear();
            for known in origin.known.values_mut() {
                known.is_forgotten = true;
            }
            (origin.rate, origin.has_forgotten) = (None, true);
        }
    }

    pub(super) fn claimed(&mut self, gateway: usize, call: &ClaimCall) -> Checked {
        let state = &mut self.origins[call.origin];
        state.record_claim(gateway, call)?;
        state.check_gateways(call)?;
        state.check_keys(call)?;
        state.check_part(call)?;
        state.check_rate(call)?;
        state.check_slots(call)
    }
}

impl State {
    /// Records a claim, and checks that no other gateway has the same name.
    fn record_claim(&mut self, gateway: usize, call: &ClaimCall) -> Checked {
        self.max_lead = self.max_lead.max(call.lead);
        // Forgotten gateways stay forgotten, also if the clock is set back.
        self.known
            .retain(|_, known| call.now - known.last_claim < FORGOTTEN_AFTER);
        for known in self.known.values_mut() {
            if call.now - known.last_claim >= SILENT {
                known.classes.clear();
            }
        }
        let known = KnownGateway {
            gateway,
            last_claim: call.now,
            is_forgotten: false,
            classes: call.classes.clone(),
        };
        let before = self.known.insert(call.gateway.clone(), known);
        // Setting the clock back makes no gateway old.
        for known in self.known.values_mut() {
            known.last_claim = known.last_claim.min(call.now);
        }
        match before {
            Some(KnownGateway { gateway: other, .. }) if other != gateway => Err(format!(
                "gateways {other} and {gateway} claim by the same name"
            )),
            _ => Ok(()),
        }
    }

    /// Checks that exactly the gateways that have claimed recently are counted.
    fn check_gateways(&self, call: &ClaimCall) -> Checked {
        let most = self.known.len();
        let kept = self.known.values().filter(|known| !known.is_forgotten);
        let least = kept.count();
        let reported = call.gateways as usize;
        if (least..=most).contains(&reported) {
            return Ok(());
        }
        Err(format!(
            "{reported} gateways are reported, not {least} to {most}"
        ))
    }

    /// Checks that reported keys count until their gateways are silent.
    fn check_keys(&mut self, call: &ClaimCall) -> Checked {
        if self.has_forgotten {
            return Ok(());
        }
        self.keys.claimed(call)?;
        let is_counted = |name: &Vec<u8>| {
            let known = self.known.get(name);
            known.is_some_and(|known| call.now - known.last_claim < SILENT)
        };
        if self.keys.gateways().all(is_counted) {
            return Ok(());
        }
        Err("the keys of a gateway that is silent count".to_owned())
    }

    /// Checks a gateway's share: by class weights first, then by keys.
    fn check_part(&self, call: &ClaimCall) -> Checked {
        if self.has_forgotten {
            return Ok(());
        }
        // Weight of each class, and sum of the weights of its waiting keys.
        let mut classes = HashMap::<u32, (f64, f64)>::new();
        for (gateway, known) in &self.known {
            for (name, weight, keys) in &known.classes {
                let class = classes.entry(*name).or_default();
                let counted = self.keys.counted(gateway, *name, *keys);
                *class = (class.0.max(*weight), class.1 + counted);
            }
        }
        let all_weights: f64 = classes.values().map(|(weight, _)| weight).sum();
        let own = call.classes.iter().map(|(name, _, keys)| {
            let (weight, all_keys) = classes[name];
            weight / all_weights * self.keys.counted(&call.gateway, *name, *keys) / all_keys
        });
        let part = if call.classes.is_empty() {
            1.0
        } else {
            own.sum::<f64>()
        };
        // The store counts shares of keys in whole numbers.
        if (part - call.part).abs() < 1e-5 {
            return Ok(());
        }
        Err(format!("a part of {} was reported, not {part}", call.part))
    }

    /// Checks that the rate of the file saved last is in force.
    fn check_rate(&mut self, call: &ClaimCall) -> Checked {
        if self.has_forgotten {
            return Ok(());
        }
        let (rate, since) = self.rate.get_or_insert((call.rate, call.since));
        if *rate == call.rate {
            *since = since.max(call.since);
        } else if call.since > *since {
            (*rate, *since) = (call.rate, call.since);
        }
        if *rate == call.in_force {
            return Ok(());
        }
        Err(format!("{} is in force, not {rate}", call.in_force))
    }

    /// Checks the granted slots: their number, their times, and their distances.
    fn check_slots(&mut self, call: &ClaimCall) -> Checked {
        let interval = nanos(call.in_force.interval() * call.pieces);
        let to_nanos = |micros: f64| (micros * 1000.0) as i64;
        let first = call.now + to_nanos(call.lead.min(100_000.0)) - EXACT;
        let last = call.now + SPAN + 3 * to_nanos(self.max_lead.min(100_000.0)) + EXACT;
        let newest = self.granted.last();
        if newest.is_some_and(|slot| *slot > call.now + MAX_AHEAD - EXACT) {
            // After the clock was set back the grid restarts at this time. Earlier grants belong to
            // another time.
            self.granted = BTreeSet::from([call.now]);
        }
        let granted = call.slots.len() as f64;
        if granted > (call.requested / f64::from(call.pieces)).ceil() {
            return Err(format!("{granted} slots for {} wanted", call.requested));
        }
        for slot in &call.slots {
            if !(first..=last).contains(slot) {
                let ahead = slot - call.now;
                return Err(format!("a slot {ahead} ns from now was granted"));
            }
            let before = self.granted.range(..=*slot).next_back();
            let after = self.granted.range(*slot..).next();
            for other in before.into_iter().chain(after) {
                let gap = (slot - other).abs();
                if gap + EXACT < interval {
                    return Err(format!(
                        "two slots {gap} ns apart were granted, at {}",
                        call.in_force
                    ));
                }
            }
            self.granted.insert(*slot);
        }
        Ok(())
    }
}
