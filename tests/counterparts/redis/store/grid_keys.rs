//! Tests that a key that waits at several gateways counts once.
//!
//! Reports may be sent, lost and forgotten in any order.

use std::collections::BTreeMap;

use gateway::store::{Claim, Grant, Pace, Store};
use limit::{Algorithm, ClassDemand, KeyChange, KeyReport};

use super::grid::claim;
use super::pace;
use super::server::{Server, run};
use crate::support::night::day_or_night;
use crate::support::rng::Rng;

const GATEWAYS: u64 = 5;
const KEYS: u64 = 12;

/// Class and weight of keys.
type Weights = BTreeMap<u64, (u32, u32)>;

/// State of one gateway.
#[derive(Default)]
struct Gateway {
    generation: u64,
    claim: u64,
    answered: u64,
    waiting: Weights,
    /// Keys of which the store may have old data.
    changed: Vec<u64>,
    /// Number of gateways at which each key waits, as last reported by the store.
    news: BTreeMap<u64, u16>,
    heard: u64,
}

impl Gateway {
    fn report(&self) -> KeyReport {
        let change = |key: &u64| KeyChange {
            key: *key,
            class: class_of(*key),
            weight: self.waiting.get(key).map_or(0, |(_, weight)| *weight),
        };
        KeyReport {
            generation: self.generation,
            claim: self.claim,
            answered: self.answered,
            changes: self.changed.iter().map(change).collect(),
        }
    }

    fn hear(&mut self, grant: &Grant) {
        self.answered = self.claim;
        if grant.keys.is_noted {
            self.changed.clear();
            self.news.extend(grant.keys.gateways.iter().copied());
        } else {
            self.generation = grant.keys.generation;
            self.changed = self.waiting.keys().copied().collect();
            self.news.clear();
        }
    }
}

fn class_of(key: u64) -> u32 {
    u32::from(key.is_multiple_of(3))
}

/// Returns the waiting demand of a gateway, by class.
fn demand(waiting: &Weights) -> Vec<ClassDemand> {
    let classes = (0..2).map(|class| ClassDemand {
        class,
        weight: 1 + class,
        keys: waiting
            .values()
            .filter(|(of, _)| *of == class)
            .map(|(_, weight)| u64::from(*weight))
            .sum(),
    });
    classes.filter(|class| class.keys > 0).collect()
}

async fn ask(store: &Store, grid: &[u8], pace: &Pace, (id, it): (u64, &Gateway), at: u64) -> Grant {
    let (classes, report) = (demand(&it.waiting), it.report());
    let claim = Claim {
        keys: Some(&report),
        ..claim(grid, id, pace, 3, &classes, at)
    };
    store.claim(&claim).await.expect("it answers")
}

/// Returns the share of a gateway if all gateways have reported all their keys.
fn part(gateways: &[Gateway], own: usize, now: u64) -> f64 {
    let lives = |it: &&Gateway| now - it.heard < 200;
    let many = |key: &u64| {
        let there = gateways.iter().filter(lives);
        there.filter(|it| it.waiting.contains_key(key)).count()
    };
    let counted = |it: &Gateway, class| -> f64 {
        let of_class = it.waiting.iter().filter(|(_, (of, _))| *of == class);
        #[allow(clippy::cast_precision_loss)]
        let parts = of_class.map(|(key, (_, weight))| f64::from(*weight) / many(key) as f64);
        parts.sum()
    };
    let all = |class| -> f64 {
        let there = gateways.iter().filter(lives);
        there.map(|it| counted(it, class)).sum()
    };
    let weight = |class: u32| {
        if all(class) > 0.0 {
            f64::from(1 + class)
        } else {
            0.0
        }
    };
    let weights = weight(0) + weight(1);
    let of_class = |class| {
        let all = all(class);
        if all > 0.0 {
            weight(class) / weights * counted(&gateways[own], class) / all
        } else {
            0.0
        }
    };
    let part = of_class(0) + of_class(1);
    if part > 0.0 { part } else { 1.0 }
}

/// Lets gateways report with losses. Then each claims twice, and all results must be correct.
async fn history(store: &Store, grid: &[u8], pace: &Pace, rng: &mut Rng, server: &Server) {
    let mut gateways: Vec<Gateway> = (0..GATEWAYS).map(|_| Gateway::default()).collect();
    let mut now = 0;
    for _ in 0..8 {
        for _ in 0..rng.within(1, 40) {
            now += rng.within(1, 12);
            let id = rng.within(0, GATEWAYS);
            let it = &mut gateways[usize::try_from(id).expect("few")];
            for _ in 0..rng.within(0, 4) {
                let key = rng.within(1, KEYS + 1);
                if rng.percent(60) {
                    let weight = u32::try_from(rng.within(1, 65)).expect("few");
                    it.waiting.insert(key, (class_of(key), weight));
                } else {
                    it.waiting.remove(&key);
                }
                it.changed.retain(|known| *known != key);
                it.changed.push(key);
            }
            it.claim += 1;
            it.heard = now;
            let grant = ask(store, grid, pace, (id, it), now).await;
            if rng.percent(85) {
                it.hear(&grant);
            }
            match rng.within(0, 100) {
                0 => {
                    let name = [b"drip:", grid].concat();
                    server.ask::<()>("UNLINK", &[&name]);
                }
                // All other gateways are silent.
                1 => now += 300,
                // One gateway restarts under the same name.
                2 => {
                    let waiting = std::mem::take(&mut it.waiting);
                    *it = Gateway {
                        changed: waiting.keys().copied().collect(),
                        waiting,
                        heard: it.heard,
                        ..Gateway::default()
                    };
                }
                _ => {}
            }
        }
        // The second and third rounds report again what was forgotten in the first.
        let mut last = Vec::new();
        for _ in 0..4 {
            last.clear();
            for (id, it) in gateways.iter_mut().enumerate() {
                now += 1;
                (it.claim, it.heard) = (it.claim + 1, now);
                let grant = ask(store, grid, pace, (id as u64, it), now).await;
                it.hear(&grant);
                last.push(grant);
            }
        }
        for (id, grant) in last.iter().enumerate() {
            let due = part(&gateways, id, now);
            assert!(
                (grant.part - due).abs() < 1e-5,
                "{} is not {due}",
                grant.part
            );
            for key in gateways[id].waiting.keys() {
                let many = gateways.iter().filter(|it| it.waiting.contains_key(key));
                let told = gateways[id].news.get(key).copied().unwrap_or(0);
                assert_eq!(usize::from(told), many.count(), "of key {key}");
            }
        }
    }
}

#[test]
fn each_key_counts_once_after_any_history() {
    let server = Server::start();
    run(async {
        let (store, pace) = (server.store(), pace("1000r/s", Algorithm::LeakyBucket, 0));
        for nth in 0..day_or_night(8, 40) {
            let grid = server.key();
            history(&store, &grid, &pace, &mut Rng::of(34, nth), &server).await;
        }
    });
}

#[test]
fn what_is_not_told_by_name_counts_whole() {
    let server = Server::start();
    let grid = server.key();
    run(async {
        let (store, pace) = (server.store(), pace("1000r/s", Algorithm::LeakyBucket, 0));
        let mut gateways = [Gateway::default(), Gateway::default()];
        for it in &mut gateways {
            it.waiting = (1..=9).map(|key| (3 * key + 1, (0, 1))).collect();
        }
        let mut last = Vec::new();
        for round in 0..3 {
            last.clear();
            for (id, it) in gateways.iter_mut().enumerate() {
                it.claim += 1;
                // The first gateway names three of its nine keys, and the other one all.
                it.changed.truncate(if id == 0 { 3 } else { 9 });
                let grant = ask(&store, &grid, &pace, (id as u64, it), round).await;
                it.hear(&grant);
                last.push(grant.part);
            }
        }
        let first = 6.0 + 3.0 / 2.0;
        let all = first + 6.0 + 3.0 / 2.0;
        assert!((last[0] - first / all).abs() < 1e-5, "{last:?}");
    });
}
