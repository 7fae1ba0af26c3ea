use std::collections::BTreeMap;

use super::Checked;
use crate::simulation::claim_call::ClaimCall;

/// The keys that gateways have told the store of one origin, counted plainly.
#[derive(Default)]
pub(super) struct ToldKeys {
    generation: f64,
    /// Class and weight of each key, by gateway.
    told: BTreeMap<Vec<u8>, BTreeMap<u64, (u32, u32)>>,
    /// The number of the last claim, by gateway. One that comes behind a later one tells nothing.
    last: BTreeMap<Vec<u8>, f64>,
    /// What each gateway has heard.
    heard: BTreeMap<Vec<u8>, Heard>,
}

/// At how many gateways its keys wait, as a gateway has heard.
#[derive(Default)]
struct Heard {
    gateways: BTreeMap<u64, u16>,
    /// The number of the last claim, and what was replied. It counts once the gateway has got it.
    replied: (f64, Vec<(u64, u16)>),
}

impl ToldKeys {
    /// A gateway tells keys. What it is told of them must be right.
    pub(super) fn claimed(&mut self, call: &ClaimCall) -> Checked {
        let (is_new, is_known) = (
            call.generation != self.generation,
            call.known == call.generation,
        );
        if is_new {
            self.generation = call.generation;
            self.told.clear();
            self.heard.clear();
        }
        let last = self.last.entry(call.gateway.clone()).or_default();
        let is_late = is_known && call.number <= *last;
        // One that knows no keys may be the first of a gateway that was alone.
        *last = if is_known {
            last.max(call.number)
        } else {
            call.number
        };
        if !call.is_noted {
            if !is_late && self.told.contains_key(&call.gateway) {
                return Err("a gateway has to tell keys again that count still".to_owned());
            }
            return Ok(());
        }
        if !is_known || is_late {
            return Err("changes of other keys were noted".to_owned());
        }
        let own = self.told.entry(call.gateway.clone()).or_default();
        for change in &call.changes {
            own.remove(&change.key);
            if change.weight > 0 {
                own.insert(change.key, (change.class, change.weight));
            }
        }
        if own.is_empty() {
            self.told.remove(&call.gateway);
        }
        self.check_heard(call)
    }

    /// With this reply a gateway knows for all its keys at how many gateways they wait.
    fn check_heard(&mut self, call: &ClaimCall) -> Checked {
        let heard = self.heard.entry(call.gateway.clone()).or_default();
        let (number, replied) =
            std::mem::replace(&mut heard.replied, (call.number, call.news.clone()));
        if call.answered == number {
            heard.gateways.extend(replied);
        }
        let mut known = heard.gateways.clone();
        known.extend(call.news.iter().copied());
        let told = self.told.get(&call.gateway).into_iter().flatten();
        for (key, _) in told {
            let (heard, gateways) = (known.get(key).copied(), self.gateways_of(*key));
            if heard.map(usize::from) != Some(gateways) {
                return Err(format!(
                    "{heard:?} gateways of a key were told, not {gateways}"
                ));
            }
        }
        Ok(())
    }

    /// The gateways that have told keys.
    pub(super) fn gateways(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.told.keys()
    }

    fn gateways_of(&self, key: u64) -> usize {
        let told = self.told.values();
        told.filter(|keys| keys.contains_key(&key)).count()
    }

    /// What counts of a class at a gateway where keys of these weights wait together.
    pub(super) fn counted(&self, gateway: &[u8], class: u32, weights: f64) -> f64 {
        let told = self.told.get(gateway).into_iter().flatten();
        let of_class = told.filter(|(_, (of, _))| *of == class);
        let (mut named, mut counted) = (0.0, 0.0);
        for (key, (_, weight)) in of_class {
            let gateways = u32::try_from(self.gateways_of(*key)).unwrap_or(u32::MAX);
            named += f64::from(*weight);
            counted += f64::from(*weight) / f64::from(gateways);
        }
        weights.min((weights - named).max(0.0) + counted)
    }
}
