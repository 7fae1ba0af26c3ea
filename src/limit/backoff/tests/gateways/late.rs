//! Tests of gateways that start late: they get the same state as the gateways that ran before.

use super::super::*;
use super::fleet::{Fleet, Gateway};
use super::{cut_one, cut_places_by_one};

/// The store has received nothing for 10 s, and a new gateway does not grow in its first window.
#[test]
fn a_gateway_that_starts_late_has_what_has_grown_meanwhile() {
    let mut fleet = Fleet::of(2);
    fleet.run(3000);
    let left = cut_one(&mut fleet);
    fleet.run(300);
    fleet.gateways[0].is_cut_off = true;
    fleet.gateways[1].every = 0;
    fleet.run(10_000);
    fleet.gateways[1] = Gateway::start(99 << 32, limits(), fleet.millis);
    fleet.run(600);
    let shares = fleet.shares();
    let has_grown = shares[0] > left + 0.05 && shares[0] < 0.9;
    assert!(has_grown, "{left} {shares:?}");
    assert!((shares[0] - shares[1]).abs() < 0.06, "{shares:?}");
}

/// The only request is answered before or after the reply of the store.
///
/// No request can be in trouble then.
#[test]
fn a_gateway_that_starts_and_has_no_more_requests_grows_with_the_others_and_holds_none_back() {
    for takes in [0, 1, 10, 100] {
        let mut fleet = Fleet::of(2);
        fleet.run(3000);
        cut_one(&mut fleet);
        fleet.run(6000);
        let mut anew = Gateway::start(99 << 32, limits(), fleet.millis);
        (anew.every, anew.takes) = (1, takes);
        fleet.gateways[1] = anew;
        fleet.run(1);
        assert_eq!(fleet.gateways[1].sent.len(), usize::from(takes > 0));
        fleet.gateways[1].every = 0;
        fleet.run(300);
        let began = fleet.shares();
        assert!(began[1] < 0.9, "it knows of the cut: {began:?}");
        fleet.run(5000);
        let shares = fleet.shares();
        let is_alike = (shares[0] - shares[1]).abs() < 0.03;
        assert!(is_alike, "{takes} ms: {shares:?}");
        let has_grown = shares[0] > began[0] + 0.04;
        assert!(has_grown, "{takes} ms: {began:?} {shares:?}");
    }
}

/// Nothing grows in a pause, whether a gateway ran then or starts in it.
#[test]
fn a_gateway_that_starts_in_a_pause_finds_places_as_they_were_before_it() {
    let mut fleet = Fleet::with(2, slow(100));
    fleet.run(3000);
    cut_places_by_one(&mut fleet);
    fleet.retry_after = Some(secs(7));
    fleet.gateways[0].trouble = 100;
    while fleet.gateways[0].backoff.paused_until().is_none() {
        fleet.run(1);
        assert!(fleet.millis < 20_000, "it never pauses");
    }
    fleet.gateways[0].trouble = 0;
    fleet.retry_after = None;
    fleet.run(300);
    // The store receives nothing from here on.
    fleet.gateways[0].is_cut_off = true;
    fleet.gateways[1].every = 0;
    let before = fleet.places()[0];
    fleet.run(5500);
    fleet.gateways[1] = Gateway::start(99 << 32, slow(100), fleet.millis);
    fleet.run(600);
    let is_paused = |gateway: &Gateway| gateway.backoff.paused_until().is_some();
    assert!(fleet.gateways.iter().all(is_paused), "the pause lasts");
    let places = fleet.places();
    assert!(before < 35 && places[0] == before, "{before} {places:?}");
    assert!(places[0].abs_diff(places[1]) <= 1, "{places:?}");
}

/// A gateway restores its state file: the time without growth applies at all gateways.
#[test]
fn what_a_gateway_has_saved_is_steady_at_all() {
    let mut fleet = Fleet::of(2);
    fleet.run(3000);
    let saved = SavedBackoff {
        share: "50%".parse().unwrap(),
        answers: 100,
        bad: 40,
        steady: secs(10),
        paused: Duration::ZERO,
        places: None,
    };
    let now = at(fleet.millis);
    let mut anew = Gateway::start(99 << 32, limits(), fleet.millis);
    anew.backoff.restore(&saved, now, now);
    fleet.gateways[0] = anew;
    fleet.run(600);
    assert_eq!(fleet.shares(), [0.5; 2]);
    fleet.gateways[1].is_cut_off = true;
    fleet.run(8000);
    assert_eq!(fleet.shares(), [0.5; 2]);
    fleet.run(4000);
    assert!(fleet.shares()[1] > 0.5, "it grows then");
}
