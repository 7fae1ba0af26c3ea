use std::cmp::Reverse;
use std::collections::HashMap;

use super::member::Named;
use crate::status::views::{FleetKey, FleetKeyPart, Plain};

/// How many keys are shown.
const MAX_KEYS: usize = 30;

/// What makes keys of several gateways one: the zone, the gate, and the name. A masked name is
/// of one gateway.
type Identity<'n> = (Plain, Option<Plain>, Plain, Option<&'n Plain>);

/// What one gateway tells of a key.
#[derive(Default)]
struct Entry {
    plan: Option<Plain>,
    depth: u64,
    rejections: u64,
    oldest_wait: f64,
}

/// The keys that wait or were rejected in the last minute at any gateway, the heaviest first.
///
/// Each gateway names the heaviest of its own, so that a key with little at each may be missing.
pub(super) fn limited(named: &[Named]) -> Vec<FleetKey> {
    let mut keys = Keys::default();
    for named in named {
        let Some(sample) = &named.reading.sample else {
            continue;
        };
        for key in sample.deepest.iter().filter(|key| key.depth > 0) {
            keys.add(
                named,
                (&key.zone, None, &key.key),
                Entry {
                    plan: key.plan.clone(),
                    depth: key.depth,
                    oldest_wait: key.oldest_wait,
                    ..Entry::default()
                },
            );
        }
        for zone in &sample.zones {
            for key in zone.rejected_keys.iter().filter(|key| key.rejections > 0) {
                keys.add(
                    named,
                    (&zone.name, None, &key.key),
                    Entry {
                        plan: key.plan.clone(),
                        rejections: key.rejections,
                        ..Entry::default()
                    },
                );
            }
        }
        for origin in &named.reading.origins {
            // Without a zone whose keys share the gate, all requests are one key there.
            let share = origin.gate.as_ref().and_then(|gate| gate.share.as_ref());
            let second = sample.origin(&origin.name).and_then(|it| it.gate.as_ref());
            let Some((zone, gate)) = share.zip(second) else {
                continue;
            };
            for key in gate.deepest.iter().filter(|key| key.depth > 0) {
                keys.add(
                    named,
                    (zone, Some(&origin.name), &key.key),
                    Entry {
                        plan: key.plan.clone(),
                        depth: key.depth,
                        ..Entry::default()
                    },
                );
            }
        }
    }
    let mut keys = keys.all;
    // Stable: equal ones stay in the order of the gateways.
    keys.sort_by_key(|key| Reverse((key.depth.max(key.rejections), key.depth)));
    keys.truncate(MAX_KEYS);
    keys
}

#[derive(Default)]
struct Keys<'n> {
    all: Vec<FleetKey>,
    known: HashMap<Identity<'n>, usize>,
}

impl<'n> Keys<'n> {
    fn add(
        &mut self,
        named: &Named<'n>,
        (zone, gate, key): (&Plain, Option<&Plain>, &Plain),
        entry: Entry,
    ) {
        let masked = named.reading.settings.masks_keys(zone.as_str());
        let only_at = masked.then_some(named.name);
        let identity = (zone.clone(), gate.cloned(), key.clone(), only_at);
        let at = *self.known.entry(identity).or_insert_with(|| {
            self.all.push(FleetKey {
                zone: zone.clone(),
                gate: gate.cloned(),
                key: key.clone(),
                masked,
                ..FleetKey::default()
            });
            self.all.len() - 1
        });
        let sums = &mut self.all[at];
        sums.depth = sums.depth.saturating_add(entry.depth);
        sums.rejections = sums.rejections.saturating_add(entry.rejections);
        sums.oldest_wait = sums.oldest_wait.max(entry.oldest_wait);
        sums.plan = sums.plan.take().or(entry.plan);
        let last = sums
            .parts
            .last_mut()
            .filter(|part| part.gateway == *named.name);
        match last {
            Some(part) => {
                part.depth = part.depth.saturating_add(entry.depth);
                part.rejections = part.rejections.saturating_add(entry.rejections);
            }
            None => sums.parts.push(FleetKeyPart {
                gateway: named.name.clone(),
                depth: entry.depth,
                rejections: entry.rejections,
            }),
        }
    }
}
