//! Properties of the keys that are named to other gateways.

use std::collections::BTreeMap;

use proptest::prelude::*;
use testing::config;

use super::named_keys::{NamedKeys, Naming};
use super::*;

const KEYS: u8 = 12;
const MAX_NAMED: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Begin {
        key: u8,
        weight: u32,
    },
    Weigh {
        key: u8,
        weight: u32,
    },
    End {
        key: u8,
    },
    Claim {
        most: usize,
        ran: bool,
        answered: bool,
    },
    Hide(bool),
    StoreForgets,
    NewsAreLost,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS;
    prop_oneof![
        6 => (key.clone(), 1..4_u32).prop_map(|(key, weight)| Step::Begin { key, weight }),
        2 => (key.clone(), 1..4_u32).prop_map(|(key, weight)| Step::Weigh { key, weight }),
        4 => key.prop_map(|key| Step::End { key }),
        4 => (1..6_usize, any::<bool>(), any::<bool>())
            .prop_map(|(most, ran, answered)| Step::Claim { most, ran: ran || answered, answered }),
        1 => any::<bool>().prop_map(Step::Hide),
        1 => Just(Step::StoreForgets),
        1 => Just(Step::NewsAreLost),
    ]
}

/// Returns the heaviest keys, and of equal weight the ones with the highest names.
fn heaviest(waiting: &BTreeMap<u8, u32>) -> BTreeMap<u64, u32> {
    let mut all: Vec<(u32, u64)> = waiting
        .iter()
        .map(|(key, weight)| (*weight, u64::from(*key)))
        .collect();
    all.sort_unstable();
    all.reverse();
    all.truncate(MAX_NAMED);
    all.into_iter().map(|(weight, key)| (key, weight)).collect()
}

proptest! {
    #![proptest_config(config())]

    /// The store learns the heaviest keys once it has replied often enough.
    #[test]
    fn the_store_learns_the_heaviest_keys(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let naming = Naming { name: |key: &u8| u64::from(*key), class: 0, max_keys: MAX_NAMED };
        let mut keys = NamedKeys::new(naming);
        let (mut waiting, mut store) = (BTreeMap::new(), BTreeMap::<u64, u32>::new());
        let mut is_hidden = false;
        let settle = [Step::Claim { most: 2 * usize::from(KEYS), ran: true, answered: true }];
        for step in steps.iter().chain(settle.iter()) {
            match *step {
                Step::Begin { key, weight } if !waiting.contains_key(&key) => {
                    waiting.insert(key, weight);
                    keys.began(key.into(), &key, weight);
                }
                Step::Weigh { key, weight } if waiting.contains_key(&key) => {
                    waiting.insert(key, weight);
                    keys.set_weight(key.into(), weight);
                }
                Step::End { key } => {
                    waiting.remove(&key);
                    keys.ended(key.into());
                }
                Step::Claim { most, ran, answered } => {
                    let mut changes = Vec::new();
                    keys.take_changes(most, &mut changes);
                    prop_assert!(changes.len() <= most);
                    for change in changes.iter().filter(|_| ran) {
                        store.remove(&change.key);
                        if change.weight > 0 {
                            store.insert(change.key, change.weight);
                        }
                    }
                    if answered {
                        keys.record_applied();
                        let mut none = Vec::new();
                        keys.take_changes(0, &mut none);
                    } else {
                        keys.unanswered();
                    }
                }
                Step::Hide(now) => {
                    is_hidden = now;
                    keys.hide(now);
                }
                Step::StoreForgets => {
                    store.clear();
                    keys.forget_reported();
                }
                Step::NewsAreLost => keys.report_again(),
                _ => {}
            }
        }
        let expected = if is_hidden { BTreeMap::new() } else { heaviest(&waiting) };
        prop_assert_eq!(&store, &expected);
        // An unchanged key is not reported again.
        let mut changes = Vec::new();
        keys.take_changes(10, &mut changes);
        prop_assert!(changes.is_empty(), "{:?}", changes);
    }

    /// Keys that count in parts depart by these parts, and predictions take them into account.
    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn turns_are_by_the_parts_that_count_here(
        keys in prop::collection::vec((1..=8_u32, 1..=20_u16), 2..6),
    ) {
        let mut queue = FairQueue::<u8, ()>::default();
        queue.name_keys(Some(Naming { name: |key: &u8| u64::from(*key), class: 0, max_keys: 100 }));
        for (key, (weight, _)) in (0..).zip(&keys) {
            for _ in 0..2000 {
                queue.join(&key, *weight, 1, ());
            }
        }
        let mut changes = Vec::new();
        queue.named().unwrap().take_changes(100, &mut changes);
        queue.record_applied();
        for (key, (_, gateways)) in (0..).zip(&keys) {
            queue.set_gateways_of_key(key, NonZeroU16::new(*gateways).unwrap());
        }
        let parts = keys.iter().map(|(weight, gateways)| f64::from(*weight) / f64::from(*gateways));
        let parts: Vec<f64> = parts.collect();
        let all: f64 = parts.iter().sum();
        let mut left = vec![0_u32; keys.len()];
        for taken in 1..=500 {
            let next = queue.take().unwrap();
            left[usize::from(next.key)] += 1;
            for (key, part) in parts.iter().enumerate() {
                let due = f64::from(taken) * part / all;
                let off = (f64::from(left[key]) - due).abs();
                prop_assert!(off <= 2.0 + keys.len() as f64, "{:?} of {}", left, due);
            }
        }
        // All waiters of a key depart before a new one of it, and waiters of others by their parts.
        let own = f64::from(2000 - left[0]);
        let others = parts.iter().zip(&left).skip(1);
        let others = others.map(|(part, left)| {
            (own * part / parts[0]).min(f64::from(2000 - left))
        });
        let (said, due) = (queue.ahead_of_new(&0) as f64, own + others.sum::<f64>());
        let slack = keys.len() as f64 + 3.0 * (all / parts[0]) + due * 1e-3;
        prop_assert!((said - due).abs() <= slack, "{} for {}", said, due);
    }
}
