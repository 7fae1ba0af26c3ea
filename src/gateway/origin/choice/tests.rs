//! Tests of the choice of a server.

use limit::stable_hash;
use proptest::prelude::*;
use testing::cases;

use super::*;

fn server(nth: usize, weight: u64) -> Candidate {
    Candidate {
        is_in: true,
        is_backup: false,
        weight: weight * WHOLE,
        in_flight: 0,
        max_in_flight: None,
        id: stable_hash(format!("http://10.0.0.{nth}:80").as_bytes()),
    }
}

fn servers(weights: &[u64]) -> Vec<Candidate> {
    let weights = weights.iter().enumerate();
    weights.map(|(nth, weight)| server(nth, *weight)).collect()
}

/// Returns the servers chosen for `requests` requests, one after the other.
fn sequence(servers: &[Candidate], requests: usize) -> Vec<usize> {
    let mut turns = RoundRobin::new(servers.len());
    let choose = |_| turns.choose(servers, None).unwrap();
    (0..requests).map(choose).collect()
}

#[test]
fn sequential_requests_come_in_the_order_of_nginx() {
    // Expected sequence of nginx's commit 52327e0627f4, which introduced the algorithm.
    assert_eq!(sequence(&servers(&[5, 1, 1]), 7), [0, 0, 1, 0, 2, 0, 0]);
    assert_eq!(sequence(&servers(&[1, 1, 1]), 6), [0, 1, 2, 0, 1, 2]);
    assert_eq!(sequence(&servers(&[1, 3]), 4), [1, 0, 1, 1]);
}

#[test]
fn a_backup_is_chosen_only_if_nothing_else_can_be() {
    let mut all = servers(&[1, 1, 100]);
    all[2].is_backup = true;
    all[0].max_in_flight = Some(1);
    all[1].max_in_flight = Some(1);
    let mut turns = RoundRobin::new(3);
    for hash in [None, Some(7)] {
        for it in &mut all {
            (it.in_flight, it.is_in) = (0, true);
        }
        for _ in 0..2 {
            let chosen = turns.choose(&all, hash).unwrap();
            assert!(chosen < 2);
            all[chosen].in_flight += 1;
        }
        assert_eq!(turns.choose(&all, hash), Ok(2));
        all[1].in_flight = 0;
        assert_eq!(turns.choose(&all, hash), Ok(1));
        all[1].is_in = false;
        assert_eq!(turns.choose(&all, hash), Ok(2));
        all[2].is_in = false;
        assert_eq!(turns.choose(&all, hash), Err(NoServer::Full));
        all[0].is_in = false;
        assert_eq!(turns.choose(&all, hash), Err(NoServer::Out));
    }
}

#[test]
fn a_key_whose_server_is_full_goes_to_the_next_in_its_order() {
    let mut all = servers(&[1, 1, 1]);
    let mut turns = RoundRobin::new(3);
    let mut order = Vec::new();
    for _ in 0..3 {
        let chosen = turns.choose(&all, Some(42)).unwrap();
        all[chosen].max_in_flight = Some(0);
        order.push(chosen);
    }
    for it in &mut all {
        it.max_in_flight = None;
    }
    // Servers go out one after the other: the order is the same.
    for expected in order {
        assert_eq!(turns.choose(&all, Some(42)), Ok(expected));
        all[expected].is_in = false;
    }
}

#[test]
fn a_hash_is_the_same_for_ever() {
    // Gateways of different versions must send a key to the same server.
    assert_eq!(stable_hash(b""), mixed(0xcbf2_9ce4_8422_2325));
    assert_eq!(stable_hash(b"alice"), 14_254_268_223_963_220_572);
    let all = servers(&[1, 2, 3, 4]);
    let of = |key: &str| RoundRobin::new(4).choose(&all, Some(stable_hash(key.as_bytes())));
    let chosen = ["a", "b", "c", "d", "e", "f", "g", "h"].map(of);
    assert_eq!(chosen, [3, 3, 1, 2, 3, 1, 2, 0].map(Ok));
}

fn weights() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1..20_u64, 2..8)
}

/// Returns how many requests each server got, relative to what its weight says.
fn shares(weights: &[u64], chosen: impl Iterator<Item = usize>, requests: usize) -> Vec<f64> {
    let mut counts = vec![0_u32; weights.len()];
    chosen.for_each(|nth| counts[nth] += 1);
    let sum: u64 = weights.iter().sum();
    let fair = |weight: u64| requests as f64 * weight as f64 / sum as f64;
    let all = counts.iter().zip(weights);
    all.map(|(count, weight)| f64::from(*count) / fair(*weight))
        .collect()
}

proptest! {
    #![proptest_config(cases(12, 2048))]

    #[test]
    fn whole_rounds_of_turns_are_spread_exactly_by_weight(weights in weights()) {
        let sum = usize::try_from(weights.iter().sum::<u64>()).unwrap();
        let chosen = sequence(&servers(&weights), 3 * sum);
        for share in shares(&weights, chosen.into_iter(), 3 * sum) {
            prop_assert!((share - 1.0).abs() < 1e-9, "{share}");
        }
    }

    #[test]
    fn many_at_once_are_within_2_percent_of_the_weights(weights in weights()) {
        let mut all = servers(&weights);
        let mut turns = RoundRobin::new(all.len());
        let requests = 20_000;
        for _ in 0..requests {
            let chosen = turns.choose(&all, None).unwrap();
            all[chosen].in_flight += 1;
        }
        let chosen = all.iter().enumerate();
        let chosen = chosen.flat_map(|(nth, it)| std::iter::repeat_n(nth, it.in_flight));
        for share in shares(&weights, chosen, requests) {
            prop_assert!((share - 1.0).abs() < 0.02, "{share}");
        }
    }

    #[test]
    fn keys_move_only_from_a_removed_server_or_to_a_heavier_one(
        weights in weights(),
        one in any::<prop::sample::Index>(),
        keys in prop::collection::vec(any::<u64>(), 200),
    ) {
        let all = servers(&weights);
        let (mut fewer, mut more) = (all.clone(), all.clone());
        let one = one.index(all.len());
        fewer[one].is_in = false;
        more[one].weight *= 2;
        let mut turns = RoundRobin::new(all.len());
        for key in keys {
            let key = stable_hash(&key.to_be_bytes());
            let before = turns.choose(&all, Some(key)).unwrap();
            let after = turns.choose(&fewer, Some(key)).unwrap();
            prop_assert!(after != one && (before == one || before == after));
            let after = turns.choose(&more, Some(key)).unwrap();
            prop_assert!(after == before || after == one);
        }
    }

    #[test]
    fn no_server_gets_more_than_it_may_have(
        weights in weights(),
        most in prop::collection::vec(0..5_usize, 8),
        backups in prop::collection::vec(any::<bool>(), 8),
        hashes in prop::collection::vec(any::<Option<u64>>(), 40),
    ) {
        let mut all = servers(&weights);
        for (nth, it) in all.iter_mut().enumerate() {
            it.max_in_flight = Some(most[nth]);
            it.is_backup = backups[nth];
        }
        let mut turns = RoundRobin::new(all.len());
        let permits: usize = most[..all.len()].iter().sum();
        for (sent, hash) in hashes.into_iter().enumerate() {
            match turns.choose(&all, hash) {
                Ok(chosen) => {
                    all[chosen].in_flight += 1;
                    prop_assert!(all[chosen].in_flight <= most[chosen]);
                    let has_room = |it: &Candidate| !it.is_backup && it.has_room();
                    prop_assert!(!all[chosen].is_backup || !all.iter().any(has_room));
                }
                Err(why) => {
                    prop_assert_eq!(why, NoServer::Full);
                    prop_assert!(sent >= permits);
                }
            }
        }
    }
}

#[test]
fn keys_are_spread_within_2_percent_of_the_weights() {
    for weights in [&[1, 1, 1][..], &[5, 3, 2], &[10, 1]] {
        let all = servers(weights);
        let mut turns = RoundRobin::new(all.len());
        let keys = 400_000;
        let of = |key: usize| {
            let key = stable_hash(format!("session-{key}").as_bytes());
            turns.choose(&all, Some(key)).unwrap()
        };
        let chosen: Vec<usize> = (0..keys).map(of).collect();
        for share in shares(weights, chosen.into_iter(), keys) {
            assert!((share - 1.0).abs() < 0.02, "{weights:?} {share}");
        }
    }
}
