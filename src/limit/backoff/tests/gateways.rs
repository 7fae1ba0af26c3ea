//! Tests of gateways that share an origin: a cut at one gateway applies at all of them.
//!
//! *Trouble* is an answer that counts as a failure. A *cut* lowers a gateway's *share* (the part of
//! the configured rate that is in force), or its permits (the number of requests in flight). The
//! gateways send each other their cuts through a store: `cluster` simulates it.

mod cluster;
mod histories;
mod late;

use super::*;
use cluster::{Cluster, Gateway};

/// Lets the first gateway receive trouble until its share is cut to `most`. Returns its share.
fn cut_one_to(cluster: &mut Cluster, most: f64) -> f64 {
    cluster.gateways[0].trouble = 100;
    cluster.run_until(|cluster| cluster.gateways[0].share() <= most);
    cluster.gateways[0].trouble = 0;
    cluster.gateways[0].share()
}

/// Lets the first gateway receive trouble until it is cut. Returns its share after the cut.
fn cut_one(cluster: &mut Cluster) -> f64 {
    cut_one_to(cluster, 0.99)
}

#[test]
fn a_cut_applies_at_all_gateways_within_a_second() {
    let mut cluster = Cluster::of(3);
    cluster.run(3000);
    let left = cut_one(&mut cluster);
    cluster.run(300);
    assert_eq!(cluster.shares(), [left; 3]);
    let counts = cluster.gateways.iter().map(|it| (it.cuts, it.adopted));
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts, [(1, 0), (0, 1), (0, 1)]);
    let elsewhere = |gateway: &Gateway| gateway.backoff.lowered().rate.unwrap().1.is_elsewhere;
    let elsewhere: Vec<_> = cluster.gateways.iter().map(elsewhere).collect();
    assert_eq!(elsewhere, [false, true, true]);
}

/// Ten gateways grow as fast as one, neither faster nor more slowly.
#[test]
fn ten_gateways_grow_as_fast_as_one() {
    // Returns the milliseconds until all gateways are back at 75 % of the rate, and at the rate.
    let back = |count: u64| {
        let mut cluster = Cluster::of(count);
        // Without any good answer no point of trouble is known, so growth is not slowed near it.
        cut_one_to(&mut cluster, 0.1);
        let began = cluster.millis;
        let mut half = 0;
        while cluster.shares().iter().any(|share| *share < 1.0) {
            cluster.run(50);
            let shares = cluster.shares();
            let most = shares.iter().copied().fold(0.0, f64::max);
            let least = shares.iter().copied().fold(1.0, f64::min);
            let is_alike = most - least < 0.03 || cluster.millis < began + 400;
            assert!(is_alike, "{shares:?}");
            if half == 0 && least >= 0.75 {
                half = cluster.millis - began;
            }
            assert!(cluster.millis < began + 120_000, "all grow back");
        }
        [half, cluster.millis - began]
    };
    let (alone, ten) = (back(1), back(10));
    println!("one: {alone:?} ms, ten: {ten:?} ms");
    for (ten, alone) in ten.into_iter().zip(alone) {
        let is_alike = ten + 1000 >= alone && ten <= alone + 2000;
        assert!(is_alike, "{alone} {ten}");
    }
}

/// All gateways see the same trouble, until all know of the cut.
#[test]
fn trouble_at_all_gateways_cuts_once() {
    let mut cluster = Cluster::of(5);
    for gateway in &mut cluster.gateways {
        (gateway.every, gateway.takes) = (0, 150);
    }
    // Windows begin at different instants at each gateway.
    for nth in 0..5 {
        cluster.gateways[nth].every = 20;
        cluster.run(290);
    }
    cluster.run(2000);
    cluster.set_trouble(100);
    cluster.run_until(|cluster| cluster.shares().iter().all(|share| *share <= 0.99));
    let left = cluster.shares().into_iter().fold(1.0, f64::min);
    assert_eq!(cluster.shares(), [left; 5]);
    // Requests in flight are still answered with trouble. Later requests are not.
    cluster.run(150);
    cluster.set_trouble(0);
    cluster.run(4000);
    assert_eq!(cluster.shares(), [left; 5]);
}

#[test]
fn a_cut_of_permits_applies_and_grows_back_at_all_gateways() {
    let mut cluster = Cluster::with(3, slow(100));
    cluster.run(3000);
    cut_permits_by_one(&mut cluster);
    let permits = cluster.permits();
    assert_eq!(permits, [permits[0]; 3]);
    assert!(permits[0] <= 32, "{permits:?}");
    cluster.run(60_000);
    assert_eq!(cluster.permits(), [40; 3]);
}

/// If one gateway has nearly too much trouble to grow, no gateway grows.
#[test]
fn the_lowest_share_applies_at_all_gateways() {
    let mut cluster = Cluster::of(2);
    cluster.run(3000);
    cut_one(&mut cluster);
    cluster.gateways[1].every = 5;
    cluster.run(7000);
    // Trouble is between half of `trip` and `trip`, once: the rate does not grow, and is not cut.
    let before = cluster.shares();
    cluster.gateways[1].trouble = 100;
    cluster.run(2500);
    let after = cluster.shares();
    let is_lower = after[0] < before[0] && after[1] < before[1];
    assert!(is_lower, "{before:?} {after:?}");
}

/// A gateway sends its state again at once if the store refused it, because another one was first.
#[test]
fn a_refused_state_is_sent_again_at_once() {
    let mut cluster = Cluster::of(1);
    cluster.run(3000);
    let left = cut_one(&mut cluster);
    cluster.run(300);
    let other = Gateway::start(99 << 32, limits(), cluster.millis).backoff;
    let nothing = other.learned(at(cluster.millis));
    cluster.store.stored = Some(([1; 12], nothing, cluster.millis));
    let sends = |cluster: &Cluster| {
        let asked = cluster.gateways[0].asked.as_ref();
        asked.is_some_and(|(ask, _)| ask.update.is_some())
    };
    cluster.run_until(sends);
    cluster.store.stored = Some(([2; 12], nothing, cluster.millis));
    cluster.run(30);
    let (_, stored, _) = cluster.store.stored.unwrap();
    let share = f64::from(stored.rate.share.millionths()) / 1e6;
    assert!((share - left).abs() < 0.001, "{share}");
}

/// Makes the answers of one gateway slow, until its limit is cut from the configured 40.
fn cut_permits_by_one(cluster: &mut Cluster) {
    cluster.gateways[0].takes = 150;
    cluster.run_until(|cluster| cluster.permits()[0] != 40);
    cluster.gateways[0].takes = 10;
    cluster.run(300);
}

#[test]
fn counts_of_one_gateway_are_scaled_to_the_cluster() {
    let mut cluster = Cluster::of(4);
    // 50 good answers a second at each gateway, 200 in all. Then 30 % of them are trouble.
    cluster.run(6000);
    cluster.set_trouble(30);
    cluster.run_until(|cluster| cluster.shares().iter().any(|share| *share <= 0.99));
    // 0.95 of 140 good answers, of 200. Without the correction, a quarter of them would cut the
    // rate to half.
    let share = cluster.shares().into_iter().fold(1.0, f64::min);
    assert!((0.6..0.75).contains(&share), "{share}");
}

#[test]
fn an_idle_gateway_receives_a_cut_within_a_second() {
    let mut cluster = Cluster::of(3);
    cluster.gateways[1].every = 0;
    cluster.run(3000);
    cluster.gateways[2] = Gateway::start(99 << 32, limits(), cluster.millis);
    cluster.gateways[2].every = 0;
    let left = cut_one(&mut cluster);
    cluster.run(1000);
    assert_eq!(cluster.shares(), [left; 3]);
    cluster.gateways[0].every = 0;
    cluster.run(60_000);
    assert_eq!(cluster.shares(), [1.0; 3], "it grows all the same");
    let asked = cluster.store.asked;
    cluster.run(60_000);
    let asked = cluster.store.asked - asked;
    assert!(asked <= 3 * 76, "{asked} questions in a minute");
}

#[test]
fn an_ordered_pause_applies_at_all_gateways_and_can_be_extended() {
    let mut cluster = Cluster::of(3);
    cluster.run(3000);
    for pause in [5, 9] {
        let now = at(cluster.millis);
        cluster.gateways[0].backoff.obey(secs(pause), now);
        cluster.run(600);
        for gateway in &cluster.gateways {
            let until = gateway.backoff.paused_until().expect("a pause");
            let off = until.since(now).abs_diff(secs(pause));
            assert!(off <= ms(20), "{off:?}");
        }
    }
}

/// One gateway gets a Retry-After that is longer than the `max_pause` of the other one.
#[test]
fn a_pause_of_another_gateway_is_bounded_by_max_pause_and_not_repeated() {
    let mut cluster = Cluster::of(2);
    let short = BackoffLimits {
        max_pause: secs(3),
        ..limits()
    };
    cluster.gateways[1] = Gateway::start(99 << 32, short, 0);
    cluster.retry_after = Some(secs(12));
    cluster.run(3000);
    pause_one(&mut cluster);
    let began = cluster.millis;
    while cluster.millis < began + 11_500 {
        cluster.run(100);
        let passed = cluster.millis - began;
        assert!(cluster.gateways[0].is_paused());
        if !(2900..3200).contains(&passed) && passed > 300 {
            let is_paused = cluster.gateways[1].is_paused();
            assert_eq!(is_paused, passed < 3000, "after {passed} ms");
        }
    }
}

/// Lets the first gateway receive trouble with Retry-After, until it pauses.
fn pause_one(cluster: &mut Cluster) {
    cluster.gateways[0].trouble = 100;
    cluster.run_until(|cluster| cluster.gateways[0].is_paused());
    cluster.gateways[0].trouble = 0;
    cluster.retry_after = None;
}
