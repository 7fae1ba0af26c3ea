//! Tests of the handover of a zone to the next process.

use limit::{DestinationId, ExpectedRequest};

use super::*;
use crate::zone::SavedKey;

/// Hands the zone over. Returns the keys that it saves, and the instant.
pub(super) async fn hand_over(bench: &Bench) -> (Vec<SavedKey>, Moment) {
    bench.zone.hand_over().await;
    let (at, mut saved) = (bench.pacer.now(), Vec::new());
    let take = async |keys: Vec<SavedKey>| {
        saved.extend(keys);
        true
    };
    bench.zone.save(at, take).await;
    (saved, at)
}

/// Creates the bench of the next process, which restores these keys at the same instant.
async fn restored(keys: Vec<SavedKey>, at: Moment, rate: &str, max_keys: usize) -> Bench {
    let bench = Bench::new(rate, max_keys);
    bench.advance_to(at).await;
    bench.zone.restore(keys, at);
    bench
}

/// Makes a request of a key. Returns the level that it finds, in requests.
pub(super) async fn charge(bench: &Bench, key: &str) -> f64 {
    let joined = bench.join(key, nodelay(burst(99))).await;
    let admission = joined.expect("admitted");
    let excess = admission.grant().excess.requests();
    admission.take();
    excess
}

#[actix::test]
async fn new_requests_wait_behind_the_waiters_of_the_previous_process() {
    let old = Bench::new("1r/s", 10);
    old.pass("a", burst(9)).await;
    let mut waiting: Vec<_> = (0..4).map(|_| old.join("a", burst(9))).collect();
    // At once, while the joins are still on their way to the key's actor.
    let (keys, at) = hand_over(&old).await;
    assert_eq!(keys.len(), 1);
    let new = restored(keys, at, "1r/s", 10).await;
    let mut newcomers = new.joins(3, "a", burst(9)).await;
    for second in 1..=7 {
        old.advance(SECOND).await;
        new.advance(SECOND).await;
        let left = passed(&mut waiting).await + passed(&mut newcomers).await;
        assert_eq!(left, 1, "in second {second}");
    }
}

#[actix::test]
async fn after_the_handover_no_request_is_accepted_and_waiters_leave() {
    let bench = Bench::new("1r/s", 10);
    bench.pass("a", burst(9)).await;
    let mut waiting = bench.joined("a", burst(9)).await;
    let (saved, at) = hand_over(&bench).await;
    for key in ["a", "b"] {
        let reason = bench.rejection(key, burst(9)).await;
        assert_eq!(reason, Rejected::Stopping, "{key}");
    }
    // A dry run admits every request.
    let dry = bench.zone.join(bench.dry_run("a", burst(9)));
    assert!(dry.await.is_ok());
    assert_eq!((saved.len(), at), (1, bench.pacer.now()));
    bench.advance(SECOND).await;
    used(&mut waiting).await;
}

#[actix::test]
async fn only_undrained_keys_are_restored_up_to_max_keys() {
    let old = Bench::new("1r/s", 100);
    let limit = nodelay(burst(9));
    for key in 0..20 {
        old.pass(&key.to_string(), limit).await;
    }
    old.advance(3 * SECOND).await;
    for key in 20..40 {
        old.pass(&key.to_string(), limit).await;
    }
    let (keys, at) = hand_over(&old).await;
    assert_eq!(keys.len(), 20);
    let new = restored(keys.clone(), at, "1r/s", 7).await;
    assert_eq!(new.active_and_parked().await, (0, 7));
    // A restored key drains like any other.
    let later = restored(keys, at, "1r/s", 100).await;
    later.advance(2 * SECOND).await;
    assert!(charge(&later, "30").await < 1e-9);
}

#[actix::test]
async fn a_new_rate_at_the_handover_acts_like_a_reload() {
    let old = Bench::new("1r/s", 10);
    for _request in 0..6 {
        let _level = charge(&old, "a").await;
    }
    let (keys, at) = hand_over(&old).await;
    let new = restored(keys, at, "10r/s", 10).await;
    // The level is the same, and leaks at the new rate.
    assert!((charge(&new, "a").await - 6.0).abs() < 1e-6);
    new.advance(300 * MS).await;
    assert!((charge(&new, "a").await - 4.0).abs() < 1e-6);
}

#[actix::test]
async fn waiters_that_go_on_to_a_gate_are_listed_with_their_times() {
    let bench = Bench::new("1r/s", 10);
    let onward = DestinationId(std::num::NonZeroU16::MIN);
    let join = |key: &str, onward, limit| {
        let request = bench.request(key, limit);
        bench.zone.join(Join { onward, ..request })
    };
    let late = Limit {
        delay: Delay::Above(2),
        ..burst(9)
    };
    let mut joins: Vec<_> = [
        ("a", Some(onward), burst(9)),
        ("a", Some(onward), costing(3, burst(9))),
        ("a", None, burst(9)),
        ("a", Some(onward), burst(9)),
        ("a", Some(onward), late),
        ("b", Some(onward), burst(9)),
        ("b", Some(onward), burst(9)),
    ]
    .map(|(key, onward, limit)| Some(join(key, onward, limit)))
    .into();
    // Milliseconds since the start, and cost.
    let listed = async || {
        let departures = bench.zone.expected_departures().await;
        assert!(departures.iter().all(|it| it.onward == onward));
        let times = departures.iter().map(|departure| {
            let ExpectedRequest { due, cost } = departure.to_come;
            (due.since(START).as_millis(), cost.get())
        });
        let mut listed: Vec<_> = times.collect();
        listed.sort_unstable();
        listed
    };
    // Also while the joins are still on their way to the actor.
    let found = listed().await;
    assert_eq!(found, [(1_000, 1), (1_000, 3), (4_000, 1), (5_000, 1)]);
    // When a waiter leaves, later waiters move up.
    joins[1] = None;
    bench.advance(500 * MS).await;
    assert_eq!(listed().await, [(1_000, 1), (1_000, 1), (2_000, 1)]);
    bench.advance(500 * MS).await;
    assert_eq!(listed().await, [(2_000, 1)]);
    bench.advance(9 * SECOND).await;
    assert_eq!(listed().await, []);
}
