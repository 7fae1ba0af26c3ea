use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use limit::Rate;

use super::told_keys::ToldKeys;
use super::{Checked, nanos};
use crate::simulation::claim_call::ClaimCall;
use crate::simulation::scenario::Scenario;

/// How long a gateway counts that does not claim, and what waits there, in nanoseconds.
const GONE: i64 = 5_000_000_000;
const SILENT: i64 = 200_000_000;
/// How far ahead slots are granted where answers take no time.
const SPAN: i64 = 50_000_000;
/// No slot is granted so far ahead: where one is, the clock was set back.
const MAX_AHEAD: i64 = 1_000_000_000;
/// How exact the times of the store are.
const EXACT: i64 = 1000;

/// The store grants each slot once, an interval behind the one before, and never in the past; and it
/// tells each gateway its part of all that wait.
pub(in crate::simulation) struct Grid {
    origins: Vec<State>,
}

#[derive(Default)]
struct State {
    /// The slots that were granted since the store last forgot.
    granted: BTreeSet<i64>,
    /// The gateways that have claimed.
    known: BTreeMap<Vec<u8>, Known>,
    /// The rate of the newest file, and since when; `None`: not known.
    rate: Option<(Rate, f64)>,
    has_forgotten: bool,
    keys: ToldKeys,
    furthest: f64,
}

struct Known {
    gateway: usize,
    heard: i64,
    /// Whether that was before the store last forgot.
    is_forgotten: bool,
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
        state.hear(gateway, call)?;
        state.check_gateways(call)?;
        state.check_keys(call)?;
        state.check_part(call)?;
        state.check_rate(call)?;
        state.check_slots(call)
    }
}

impl State {
    fn hear(&mut self, gateway: usize, call: &ClaimCall) -> Checked {
        self.furthest = self.furthest.max(call.lead);
        // What is forgotten stays so, also if the clock is set back.
        self.known.retain(|_, it| call.now - it.heard < GONE);
        for known in self.known.values_mut() {
            if call.now - known.heard >= SILENT {
                known.classes.clear();
            }
        }
        let known = Known {
            gateway,
            heard: call.now,
            is_forgotten: false,
            classes: call.classes.clone(),
        };
        let before = self.known.insert(call.gateway.clone(), known);
        // A clock that was set back makes nobody old.
        for known in self.known.values_mut() {
            known.heard = known.heard.min(call.now);
        }
        match before {
            Some(Known { gateway: other, .. }) if other != gateway => Err(format!(
                "gateways {other} and {gateway} claim by the same name"
            )),
            _ => Ok(()),
        }
    }

    /// All count that have claimed lately, and no others.
    fn check_gateways(&self, call: &ClaimCall) -> Checked {
        let most = self.known.len();
        let kept = self.known.values().filter(|it| !it.is_forgotten);
        let least = kept.count();
        let told = call.gateways as usize;
        if (least..=most).contains(&told) {
            return Ok(());
        }
        Err(format!(
            "{told} gateways are told of, not {least} to {most}"
        ))
    }

    /// What gateways have told of keys counts until they are silent.
    fn check_keys(&mut self, call: &ClaimCall) -> Checked {
        if self.has_forgotten {
            return Ok(());
        }
        self.keys.claimed(call)?;
        let is_heard = |name: &Vec<u8>| {
            let known = self.known.get(name);
            known.is_some_and(|known| call.now - known.heard < SILENT)
        };
        if self.keys.gateways().all(is_heard) {
            return Ok(());
        }
        Err("the keys of a gateway that is silent count".to_owned())
    }

    /// A gateway's part is that of the weights that wait there: of classes first, then of keys.
    fn check_part(&self, call: &ClaimCall) -> Checked {
        if self.has_forgotten {
            return Ok(());
        }
        let mut classes = HashMap::<u32, (f64, f64)>::new();
        for (gateway, known) in &self.known {
            for (name, weight, keys) in &known.classes {
                let class = classes.entry(*name).or_default();
                let counted = self.keys.counted(gateway, *name, *keys);
                *class = (class.0.max(*weight), class.1 + counted);
            }
        }
        let all: f64 = classes.values().map(|(weight, _)| weight).sum();
        let own = call.classes.iter().map(|(name, _, keys)| {
            let (weight, of_all) = classes[name];
            weight / all * self.keys.counted(&call.gateway, *name, *keys) / of_all
        });
        let part = if call.classes.is_empty() {
            1.0
        } else {
            own.sum::<f64>()
        };
        // The store counts keys in parts that are whole numbers.
        if (part - call.part).abs() < 1e-5 {
            return Ok(());
        }
        Err(format!("a part of {} was told, not {part}", call.part))
    }

    /// The rate of the file that was saved last is in force.
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

    fn check_slots(&mut self, call: &ClaimCall) -> Checked {
        let interval = nanos(call.in_force.interval() * call.pieces);
        let micros = |micros: f64| (micros * 1000.0) as i64;
        let first = call.now + micros(call.lead.min(100_000.0)) - EXACT;
        let last = call.now + SPAN + 3 * micros(self.furthest.min(100_000.0)) + EXACT;
        let newest = self.granted.last();
        if newest.is_some_and(|slot| *slot > call.now + MAX_AHEAD - EXACT) {
            // The grid follows a clock that was set back: it begins anew behind this moment. What
            // was granted before is of another time.
            self.granted = BTreeSet::from([call.now]);
        }
        let granted = call.slots.len() as f64;
        if granted > (call.wanted / f64::from(call.pieces)).ceil() {
            return Err(format!("{granted} slots for {} wanted", call.wanted));
        }
        for slot in &call.slots {
            if !(first..=last).contains(slot) {
                let ahead = slot - call.now;
                return Err(format!("a slot {ahead} ns from now was granted"));
            }
            let before = self.granted.range(..=*slot).next_back();
            let behind = self.granted.range(*slot..).next();
            for other in before.into_iter().chain(behind) {
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
