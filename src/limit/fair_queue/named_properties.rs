//! Properties of the *named* keys: the heaviest waiting keys, which are reported to other gateways.
//!
//! A *claim* reports changes to the store that gateways share.

use std::collections::BTreeMap;

use proptest::prelude::*;
use testing::config;

use super::named_keys::{NamedKeys, Naming};
use super::*;

const KEYS: u8 = 12;
const MAX_NAMED: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    /// A key begins to wait with a weight.
    Begin(u8, u32),
    /// A waiting key gets another weight.
    Weigh(u8, u32),
    /// A key waits no longer.
    End(u8),
    /// A claim reports up to `limit` changes.
    Claim { limit: usize, fate: Fate },
    /// Whether keys are reported as if none waited.
    Hide(bool),
    /// The store knows no key any more, and says so.
    StoreForgets,
    /// The store has lost news of the keys, and says so.
    NewsAreLost,
}

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// The claim does not reach the store.
    Lost,
    /// The store applies it, but the reply is lost.
    Applied,
    /// The store applies it and replies.
    Answered,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS;
    let fate = prop_oneof![
        1 => Just(Fate::Lost),
        1 => Just(Fate::Applied),
        2 => Just(Fate::Answered),
    ];
    prop_oneof![
        6 => (key.clone(), 1..4_u32).prop_map(|(key, weight)| Step::Begin(key, weight)),
        2 => (key.clone(), 1..4_u32).prop_map(|(key, weight)| Step::Weigh(key, weight)),
        4 => key.prop_map(Step::End),
        4 => (1..6_usize, fate).prop_map(|(limit, fate)| Step::Claim { limit, fate }),
        1 => any::<bool>().prop_map(Step::Hide),
        1 => Just(Step::StoreForgets),
        1 => Just(Step::NewsAreLost),
    ]
}

/// Returns the heaviest keys, and of equal weight the ones with the highest names.
fn heaviest(waiting: &BTreeMap<u8, u32>) -> BTreeMap<u64, u32> {
    let by_weight = |(key, weight): (&u8, &u32)| (*weight, u64::from(*key));
    let mut all: Vec<_> = waiting.iter().map(by_weight).collect();
    all.sort_unstable();
    let heaviest = all.into_iter().rev().take(MAX_NAMED);
    heaviest.map(|(weight, key)| (key, weight)).collect()
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
        // Weights of the waiting keys, and of the keys that the store knows.
        let (mut waiting, mut store) = (BTreeMap::new(), BTreeMap::<u64, u32>::new());
        let mut is_hidden = false;
        let last = Step::Claim { limit: 2 * usize::from(KEYS), fate: Fate::Answered };
        for step in steps.into_iter().chain([last]) {
            match step {
                Step::Begin(key, weight) if !waiting.contains_key(&key) => {
                    waiting.insert(key, weight);
                    keys.began(key.into(), &key, weight);
                }
                Step::Weigh(key, weight) if waiting.contains_key(&key) => {
                    waiting.insert(key, weight);
                    keys.set_weight(key.into(), weight);
                }
                Step::End(key) => {
                    waiting.remove(&key);
                    keys.ended(key.into());
                }
                Step::Claim { limit, fate } => {
                    let mut changes = Vec::new();
                    keys.take_changes(limit, &mut changes);
                    prop_assert!(changes.len() <= limit);
                    for change in changes.iter().filter(|_| fate != Fate::Lost) {
                        store.remove(&change.key);
                        if change.weight > 0 {
                            store.insert(change.key, change.weight);
                        }
                    }
                    if fate == Fate::Answered {
                        keys.record_applied();
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
    fn departures_are_by_the_parts_of_weights_that_count_here(
        // Weight of each key, and the number of gateways at which it waits.
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
        let (predicted, due) = (queue.ahead_of_new(&0) as f64, own + others.sum::<f64>());
        let slack = keys.len() as f64 + 3.0 * (all / parts[0]) + due * 1e-3;
        prop_assert!((predicted - due).abs() <= slack, "{predicted} for {due}");
    }
}
