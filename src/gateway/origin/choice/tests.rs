//! Tests of the choice of a server.

use limit::stable_hash;
use proptest::prelude::*;
use testing::cases;

use super::*;

/// Returns servers with these weights that are in and have no requests.
fn servers(weights: &[u64]) -> Vec<Candidate> {
    let server = |(nth, weight): (usize, &u64)| Candidate {
        is_in: true,
        is_backup: false,
        weight: weight * WHOLE,
        in_flight: 0,
        max_in_flight: None,
        id: stable_hash(format!("http://10.0.0.{nth}:80").as_bytes()),
    };
    weights.iter().enumerate().map(server).collect()
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

/// Checks that each server got requests in proportion to its weight, within `tolerance`.
fn check_shares(weights: &[u64], chosen: impl Iterator<Item = usize>, tolerance: f64) {
    let mut counts = vec![0_u32; weights.len()];
    chosen.for_each(|nth| counts[nth] += 1);
    let (requests, sum) = (counts.iter().sum::<u32>(), weights.iter().sum::<u64>());
    for (count, weight) in counts.iter().zip(weights) {
        let fair = f64::from(requests) * *weight as f64 / sum as f64;
        let share = f64::from(*count) / fair;
        assert!((share - 1.0).abs() < tolerance, "{weights:?} {share}");
    }
}

proptest! {
    #![proptest_config(cases(12, 2048))]

    #[test]
    fn whole_rounds_of_turns_are_spread_exactly_by_weight(weights in weights()) {
        let sum = usize::try_from(weights.iter().sum::<u64>()).unwrap();
        let chosen = sequence(&servers(&weights), 3 * sum);
        check_shares(&weights, chosen.into_iter(), 1e-9);
    }

    #[test]
    fn many_at_once_are_within_2_percent_of_the_weights(weights in weights()) {
        let mut all = servers(&weights);
        let mut turns = RoundRobin::new(all.len());
        let chosen = (0..20_000).map(|_| {
            let chosen = turns.choose(&all, None).unwrap();
            all[chosen].in_flight += 1;
            chosen
        });
        check_shares(&weights, chosen, 0.02);
    }

    /// A full server is like one that is out: its keys go to the next one in their order.
    #[test]
    fn keys_move_only_from_a_removed_server_or_to_a_heavier_one(
        weights in weights(),
        removed in prop::collection::vec(any::<bool>(), 8),
        heavier in any::<prop::sample::Index>(),
        keys in prop::collection::vec(any::<u64>(), 200),
    ) {
        let all = servers(&weights);
        let (mut fewer, mut full, mut more) = (all.clone(), all.clone(), all.clone());
        // The first server stays.
        for nth in (1..all.len()).filter(|nth| removed[*nth]) {
            fewer[nth].is_in = false;
            full[nth].max_in_flight = Some(0);
        }
        let heavier = heavier.index(all.len());
        more[heavier].weight *= 2;
        let mut turns = RoundRobin::new(all.len());
        for key in keys {
            let hash = Some(stable_hash(&key.to_be_bytes()));
            let before = turns.choose(&all, hash).unwrap();
            let after = turns.choose(&fewer, hash).unwrap();
            prop_assert!(fewer[after].is_in && (before == after || !fewer[before].is_in));
            prop_assert_eq!(turns.choose(&full, hash), Ok(after));
            let after = turns.choose(&more, hash).unwrap();
            prop_assert!(after == before || after == heavier);
        }
    }

    /// A backup gets a request only if no other server can take it.
    #[test]
    fn no_server_gets_more_than_it_may_have(
        weights in weights(),
        limits in prop::collection::vec(0..5_usize, 8),
        are_in in prop::collection::vec(prop::bool::weighted(0.8), 8),
        backups in prop::collection::vec(any::<bool>(), 8),
        hashes in prop::collection::vec(any::<Option<u64>>(), 40),
    ) {
        let mut all = servers(&weights);
        for (nth, it) in all.iter_mut().enumerate() {
            it.max_in_flight = Some(limits[nth]);
            it.is_in = are_in[nth];
            it.is_backup = backups[nth];
        }
        let is_any_in = all.iter().any(|it| it.is_in);
        let mut turns = RoundRobin::new(all.len());
        for hash in hashes {
            let can_take: Vec<_> = all.iter().filter(|it| it.has_room()).collect();
            let only_backups = can_take.iter().all(|it| it.is_backup);
            match turns.choose(&all, hash) {
                Ok(chosen) => {
                    prop_assert!(all[chosen].has_room() && all[chosen].is_backup == only_backups);
                    all[chosen].in_flight += 1;
                }
                Err(why) => {
                    prop_assert!(can_take.is_empty());
                    prop_assert_eq!(why, if is_any_in { NoServer::Full } else { NoServer::Out });
                }
            }
        }
        for server in &mut all {
            server.is_in = false;
        }
        for hash in [None, Some(7)] {
            prop_assert_eq!(turns.choose(&all, hash), Err(NoServer::Out));
        }
    }
}

#[test]
fn keys_are_spread_within_2_percent_of_the_weights() {
    for weights in [&[1, 1, 1][..], &[5, 3, 2], &[10, 1]] {
        let all = servers(weights);
        let mut turns = RoundRobin::new(all.len());
        let choose = |key: usize| {
            let key = stable_hash(format!("session-{key}").as_bytes());
            turns.choose(&all, Some(key)).unwrap()
        };
        check_shares(weights, (0..400_000).map(choose), 0.02);
    }
}
