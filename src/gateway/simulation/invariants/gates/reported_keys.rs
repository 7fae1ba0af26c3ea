//! A simple model of the keys that gateways have reported to the store.
//!
//! Gateways that share a gate report which keys wait at them. The store tells each gateway at how
//! many gateways its keys wait, because a key has one share at all of them together.

use std::collections::BTreeMap;

use super::Checked;
use crate::simulation::claim_call::ClaimCall;

/// Keys that gateways have reported to the store for one origin.
#[derive(Default)]
pub(super) struct ReportedKeys {
    /// Number that the store changes when it loses what was reported.
    generation: f64,
    /// Class and weight of each reported key, by gateway.
    reported: BTreeMap<Vec<u8>, BTreeMap<u64, (u32, u32)>>,
    /// Number of the last claim, by gateway.
    ///
    /// A claim that arrives after a later one reports nothing.
    last: BTreeMap<Vec<u8>, f64>,
    /// Information that each gateway has received.
    received: BTreeMap<Vec<u8>, ReceivedKeys>,
}

/// Number of gateways at which keys wait, as received by a gateway.
#[derive(Default)]
struct ReceivedKeys {
    /// Number of gateways, by key.
    gateways: BTreeMap<u64, u16>,
    /// Number of the last claim, and its reply. The reply counts once the gateway has received it.
    replied: (f64, Vec<(u64, u16)>),
}

impl ReportedKeys {
    /// Records the keys reported by a gateway, and checks the store's reply.
    pub(super) fn claimed(&mut self, call: &ClaimCall) -> Checked {
        let is_known = call.known == call.generation;
        if call.generation != self.generation {
            self.generation = call.generation;
            self.reported.clear();
            self.received.clear();
        }
        let last = self.last.entry(call.gateway.clone()).or_default();
        let is_late = is_known && call.number <= *last;
        // A claim without a known generation may be the first one of a gateway that was alone.
        *last = if is_known {
            last.max(call.number)
        } else {
            call.number
        };
        if !call.is_noted {
            if !is_late && self.reported.contains_key(&call.gateway) {
                return Err("a gateway has to report keys again that still count".to_owned());
            }
            return Ok(());
        }
        if !is_known || is_late {
            return Err("changes of other keys were noted".to_owned());
        }
        let own = self.reported.entry(call.gateway.clone()).or_default();
        for change in &call.changes {
            own.remove(&change.key);
            if change.weight > 0 {
                own.insert(change.key, (change.class, change.weight));
            }
        }
        if own.is_empty() {
            self.reported.remove(&call.gateway);
        }
        self.check_received(call)
    }

    /// Checks that the reply completes the gateway's knowledge of where its keys wait.
    fn check_received(&mut self, call: &ClaimCall) -> Checked {
        let received = self.received.entry(call.gateway.clone()).or_default();
        let (number, replied) =
            std::mem::replace(&mut received.replied, (call.number, call.news.clone()));
        if call.answered == number {
            received.gateways.extend(replied);
        }
        let mut known = received.gateways.clone();
        known.extend(call.news.iter().copied());
        let reported = self.reported.get(&call.gateway).into_iter().flatten();
        for (key, _) in reported {
            let (received, gateways) = (known.get(key).copied(), self.gateways_of(*key));
            if received.map(usize::from) != Some(gateways) {
                return Err(format!(
                    "{received:?} gateways of a key were reported, not {gateways}"
                ));
            }
        }
        Ok(())
    }

    /// Returns the gateways that have reported keys.
    pub(super) fn gateways(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.reported.keys()
    }

    /// Returns the number of gateways that have reported a key.
    fn gateways_of(&self, key: u64) -> usize {
        let reported = self.reported.values();
        reported.filter(|keys| keys.contains_key(&key)).count()
    }

    /// Returns the weight that counts for a class at a gateway with this sum of key weights.
    pub(super) fn counted(&self, gateway: &[u8], class: u32, weights: f64) -> f64 {
        let reported = self.reported.get(gateway).into_iter().flatten();
        let of_class = reported.filter(|(_, (other, _))| *other == class);
        // Weights of the reported keys: whole, and divided by the number of their gateways.
        let (mut named, mut counted) = (0.0, 0.0);
        for (key, (_, weight)) in of_class {
            let gateways = u32::try_from(self.gateways_of(*key)).unwrap_or(u32::MAX);
            named += f64::from(*weight);
            counted += f64::from(*weight) / f64::from(gateways);
        }
        weights.min((weights - named).max(0.0) + counted)
    }
}
