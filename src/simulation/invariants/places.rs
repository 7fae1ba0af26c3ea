use std::collections::{BTreeMap, BTreeSet};

use super::{Checked, Request};
use crate::actors::{Charge, Grant};
use crate::limit::Cost;
use crate::simulation::script_call::{CallEntry, ScriptCall};

/// No place of a schedule is handed out twice, and no place is used twice.
#[derive(Default)]
pub(super) struct Places {
    /// The places that are taken: of each key in the store.
    taken: BTreeMap<String, BTreeSet<u64>>,
    /// Who departed at a place: of each zone, key and place.
    used: BTreeMap<(usize, &'static str, u64), u64>,
    has_forgotten: bool,
}

impl Places {
    pub(super) fn store_ran(&mut self, call: &ScriptCall) -> Checked {
        let entries = call.entries.iter().filter(|entry| entry.has_places());
        for entry in entries.filter(|entry| entry.done > 0) {
            let taken = self.taken.entry(entry.key.clone()).or_default();
            if call.is_join() {
                take(taken, entry)?;
            } else if call.is_refund() {
                let given_back = entry.first..entry.first + u64::from(entry.cost);
                given_back.for_each(|place| _ = taken.remove(&place));
            } else if call.is_forget() {
                // All behind the last who waits are handed out again.
                taken.clear();
            }
        }
        Ok(())
    }

    pub(super) fn store_forgot(&mut self) {
        self.taken.clear();
        self.has_forgotten = true;
    }

    /// A request departs at its place, which nobody else has used.
    pub(super) fn departed(&mut self, request: &Request, grant: &Grant) -> Checked {
        let Charge::Store(charge) = grant.charge else {
            return Ok(());
        };
        // Other algorithms have no places. A store that has forgotten begins with any place.
        if charge.place() == 0 || self.has_forgotten {
            return Ok(());
        }
        for place in charge.place()..charge.place() + u64::from(charge.cost().get()) {
            let seat = (request.zone, request.key, place);
            if let Some(other) = self.used.insert(seat, request.id) {
                let id = request.id;
                return Err(format!(
                    "requests {other} and {id} depart at the same place {place}"
                ));
            }
        }
        Ok(())
    }

    /// A request gives its places back, or some of them.
    pub(super) fn settled(&mut self, request: &Request, cost: Option<Cost>) {
        let kept = usize::try_from(cost.map_or(0, Cost::get)).unwrap_or(0);
        let own = self.used.iter().filter(|(_, id)| **id == request.id);
        let own: Vec<_> = own.map(|(place, _)| *place).skip(kept).collect();
        for place in own {
            self.used.remove(&place);
        }
    }
}

fn take(taken: &mut BTreeSet<u64>, entry: &CallEntry) -> Checked {
    let behind = u64::from(entry.done) - entry.free.len() as u64;
    let end = entry.end..entry.end + behind * u64::from(entry.cost);
    for place in entry.free.iter().copied().chain(end) {
        if !taken.insert(place) {
            let key = &entry.key;
            return Err(format!("place {place} of {key} is handed out twice"));
        }
    }
    Ok(())
}
