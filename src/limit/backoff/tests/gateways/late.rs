//! Tests of gateways that start late: they get the same state as the gateways that ran before.
//!
//! A *cut* lowers a gateway's *share* of the configured rate, or its permits (the number of
//! requests in flight). The gateways send each other their cuts through a store. A lowered share
//! grows again.

use super::super::*;
use super::cluster::{Cluster, Gateway};
use super::{cut_one, cut_permits_by_one, pause_one};

/// The store has received nothing for 10 s, and a new gateway does not grow in its first window.
#[test]
fn a_late_gateway_starts_with_the_grown_rate() {
    let mut cluster = Cluster::of(2);
    cluster.run(3000);
    let left = cut_one(&mut cluster);
    cluster.run(300);
    cluster.gateways[0].is_cut_off = true;
    cluster.gateways[1].every = 0;
    cluster.run(10_000);
    cluster.gateways[1] = Gateway::start(99 << 32, limits(), cluster.millis);
    cluster.run(600);
    let shares = cluster.shares();
    let has_grown = shares[0] > left + 0.05 && shares[0] < 0.9;
    assert!(has_grown, "{left} {shares:?}");
    assert!((shares[0] - shares[1]).abs() < 0.06, "{shares:?}");
}

/// The only request is answered before or after the reply of the store.
///
/// No request can be in trouble then.
#[test]
fn an_idle_late_gateway_grows_with_the_cluster() {
    for takes in [0, 1, 10, 100] {
        let mut cluster = Cluster::of(2);
        cluster.run(3000);
        cut_one(&mut cluster);
        cluster.run(6000);
        let mut anew = Gateway::start(99 << 32, limits(), cluster.millis);
        (anew.every, anew.takes) = (1, takes);
        cluster.gateways[1] = anew;
        cluster.run(1);
        assert_eq!(cluster.gateways[1].sent.len(), usize::from(takes > 0));
        cluster.gateways[1].every = 0;
        cluster.run(300);
        let began = cluster.shares();
        assert!(began[1] < 0.9, "it knows of the cut: {began:?}");
        cluster.run(5000);
        let shares = cluster.shares();
        let is_alike = (shares[0] - shares[1]).abs() < 0.03;
        assert!(is_alike, "{takes} ms: {shares:?}");
        let has_grown = shares[0] > began[0] + 0.04;
        assert!(has_grown, "{takes} ms: {began:?} {shares:?}");
    }
}

/// Nothing grows in a pause, whether a gateway ran then or starts in it.
#[test]
fn a_gateway_started_in_a_pause_has_the_permits_of_before_it() {
    let mut cluster = Cluster::with(2, slow(100));
    cluster.run(3000);
    cut_permits_by_one(&mut cluster);
    cluster.retry_after = Some(secs(7));
    pause_one(&mut cluster);
    cluster.run(300);
    // The store receives nothing from here on.
    cluster.gateways[0].is_cut_off = true;
    cluster.gateways[1].every = 0;
    let before = cluster.permits()[0];
    cluster.run(5500);
    cluster.gateways[1] = Gateway::start(99 << 32, slow(100), cluster.millis);
    cluster.run(600);
    let mut gateways = cluster.gateways.iter();
    assert!(gateways.all(Gateway::is_paused), "the pause lasts");
    let permits = cluster.permits();
    assert!(before < 35 && permits[0] == before, "{before} {permits:?}");
    assert!(permits[0].abs_diff(permits[1]) <= 1, "{permits:?}");
}

/// A gateway restores its state file: the time without growth applies at all gateways.
#[test]
fn a_restored_steady_time_applies_at_all_gateways() {
    let mut cluster = Cluster::of(2);
    cluster.run(3000);
    let saved = SavedBackoff {
        share: "50%".parse().unwrap(),
        answers: 100,
        bad: 40,
        steady: secs(10),
        paused: Duration::ZERO,
        permits: None,
    };
    let now = at(cluster.millis);
    let mut anew = Gateway::start(99 << 32, limits(), cluster.millis);
    anew.backoff.restore(&saved, now, now);
    cluster.gateways[0] = anew;
    cluster.run(600);
    assert_eq!(cluster.shares(), [0.5; 2]);
    cluster.gateways[1].is_cut_off = true;
    cluster.run(8000);
    assert_eq!(cluster.shares(), [0.5; 2]);
    cluster.run(4000);
    assert!(cluster.shares()[1] > 0.5, "it grows then");
}
