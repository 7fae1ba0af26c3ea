//! Invariant: each slot of a schedule is used once.
//!
//! The leaky bucket of a key has a schedule of *slots*, at which its requests leave. A *lease* is
//! slots of a busy key that a gateway takes ahead. A method with the name of an event, such as
//! `departed`, records the event.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use limit::Cost;

use super::{Checked, Request};
use crate::simulation::scenario::Scenario;
use crate::simulation::script_call::{CallEntry, ScriptCall, zone_and_key};
use crate::zone::{Charge, Grant};

/// Invariant: no slot of a schedule is handed out twice or used twice.
///
/// If nothing fails, an unused slot of a lease is returned, unless the slot passed before the lease
/// ended. This is not checked if costs are mixed or change: see [`Books`](super::books::Books).
pub(super) struct ScheduleSlots {
    scenario: Rc<Scenario>,
    /// Slots in use, by key in the store.
    taken: BTreeMap<String, BTreeMap<u64, Taken>>,
    /// Requests that departed in a slot, by zone, key and slot.
    used: BTreeMap<(usize, &'static str, u64), u64>,
    /// Whether the store has lost data.
    has_forgotten: bool,
}

/// A slot that is in use.
#[derive(Clone, Copy)]
struct Taken {
    /// Time at which the store granted it.
    at: Duration,
    /// Lower bound of the number of requests in the bucket before it.
    level: f64,
    /// Whether its return was refused because its time had passed.
    is_returned: bool,
}

impl ScheduleSlots {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            taken: BTreeMap::new(),
            used: BTreeMap::new(),
            has_forgotten: false,
        }
    }

    pub(super) fn store_ran(&mut self, call: &ScriptCall, now: Duration) -> Checked {
        for entry in call.entries.iter().filter(|entry| entry.has_slots()) {
            let taken = self.taken.entry(entry.key.clone()).or_default();
            let given_back = entry.first..entry.first + u64::from(entry.cost);
            if call.is_refund() && entry.done == 0 {
                for (_, slot) in taken.range_mut(given_back) {
                    slot.is_returned = true;
                }
            } else if entry.done == 0 {
                // Nothing has changed.
            } else if call.is_join() {
                take(taken, entry, now)?;
            } else if call.is_refund() {
                given_back.for_each(|slot| _ = taken.remove(&slot));
            } else if call.is_forget() {
                // All slots behind the last waiter are handed out again.
                taken.clear();
            }
        }
        Ok(())
    }

    /// Records that a key was deleted in the store: its slots may be handed out again at once.
    pub(super) fn deleted(&mut self, key: &str) {
        self.taken.remove(key);
    }

    pub(super) fn store_forgot(&mut self) {
        self.taken.clear();
        self.has_forgotten = true;
    }

    /// Checks that a request departs in its slot, and no other request has used the slot.
    pub(super) fn departed(&mut self, request: &Request, grant: &Grant) -> Checked {
        let Charge::Store(charge) = grant.charge else {
            return Ok(());
        };
        // Other algorithms have no slots. After a loss of data, the store begins with any slot.
        if charge.slot() == 0 || self.has_forgotten {
            return Ok(());
        }
        for slot in charge.slot()..charge.slot() + u64::from(charge.cost().get()) {
            let used = (request.zone, request.key, slot);
            if let Some(other) = self.used.insert(used, request.id) {
                let id = request.id;
                return Err(format!(
                    "requests {other} and {id} depart at the same place {slot}"
                ));
            }
        }
        Ok(())
    }

    /// Checks the unused slots at the end.
    pub(super) fn check(&self) -> Checked {
        let [.., settled] = self.scenario.moods;
        // If a request costs more in the end, slots of waiters may pay for it.
        if !self.scenario.is_calm() || settled > 0 {
            return Ok(());
        }
        for (name, taken) in &self.taken {
            let Some((zone, key)) = zone_and_key(name) else {
                continue;
            };
            let plan = &self.scenario.zones[zone];
            // A new rate changes the times of all slots.
            if plan.has_mixed_costs() || self.scenario.retunes(zone) > 0 {
                continue;
            }
            let rate = plan.rate_of(key).per_second();
            let keys = plan.keys.iter().filter(|known| **known == key);
            let unused = taken.iter().filter(|(slot, taken)| {
                let mut slots = keys.clone().map(|key| (zone, *key, **slot));
                !taken.is_returned && slots.all(|slot| !self.used.contains_key(&slot))
            });
            for (slot, taken) in unused {
                let due = taken.at + Duration::from_secs_f64(taken.level.max(0.0) / rate);
                let over = taken.at + return_delay(plan.lease);
                if plan.lease.is_zero() || due > over {
                    return Err(format!(
                        "place {slot} of {name} was not used and not given back"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Records that a request returns some or all of its slots.
    pub(super) fn settled(&mut self, request: &Request, cost: Option<Cost>) {
        let kept = usize::try_from(cost.map_or(0, Cost::get)).unwrap_or(0);
        let own = self.used.iter().filter(|(_, id)| **id == request.id);
        let own: Vec<_> = own.map(|(slot, _)| *slot).skip(kept).collect();
        for slot in own {
            self.used.remove(&slot);
        }
    }
}

/// Returns the time after a grant at which the gateway returns an unused slot.
fn return_delay(lease: Duration) -> Duration {
    // The gateway checks every eighth of the lease, and tokio's timers have whole milliseconds.
    lease + (lease / 8).max(Duration::from_millis(1)) + Duration::from_millis(2)
}

/// Records the slots that a join has taken.
fn take(taken: &mut BTreeMap<u64, Taken>, entry: &CallEntry, now: Duration) -> Checked {
    let at_end = u64::from(entry.done) - entry.free.len() as u64;
    let end = entry.end..entry.end + at_end * u64::from(entry.cost);
    for slot in entry.free.iter().copied().chain(end) {
        // Slots are one request apart, including the free ones before the end.
        let level = entry.end_level + slot as f64 - entry.end as f64;
        let new = Taken {
            at: now,
            level,
            is_returned: false,
        };
        if taken.insert(slot, new).is_some() {
            let key = &entry.key;
            return Err(format!("place {slot} of {key} is handed out twice"));
        }
    }
    Ok(())
}
