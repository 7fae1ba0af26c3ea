//! Tests of the claims of a gate.

use super::*;
use crate::{Cost, GateLimits, Share};

type TestGate = Gate<u8, u32>;

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

fn at(millis: u64) -> Moment {
    START + Duration::from_millis(millis)
}

fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// Creates a gate that shares 100r/s, with a number of waiters.
fn waiting(requests: u32) -> TestGate {
    let mut gate = Gate::new(GateLimits {
        rate: "100r/s".parse().ok(),
        ..GateLimits::NONE
    });
    gate.share_grid();
    add(&mut gate, requests, START);
    gate
}

fn add(gate: &mut TestGate, requests: u32, now: Moment) {
    for number in 0..requests {
        gate.join(&Share::of(1), Cost::ONE, now, || number);
    }
}

fn answer(gateways: u32, slots: &[u64], again: u64) -> GridAnswer {
    let slots: Vec<Moment> = slots.iter().map(|slot| at(*slot)).collect();
    GridAnswer {
        gateways: count(gateways),
        part: 0.5,
        rate: "100r/s".parse().unwrap(),
        free: slots.last().map_or(START, |last| *last),
        again: at(again),
        classes: Vec::new(),
        keys: KeyNews::default(),
        slots,
    }
}

/// Returns when the next claim is due, in milliseconds.
fn due(claims: &Claims, gate: &TestGate, now: u64) -> Option<u128> {
    let due = claims.due(gate, at(now))?;
    Some(due.since(START).as_millis())
}

#[test]
fn the_first_waiter_claims_at_once_and_one_claim_is_in_flight() {
    let (mut claims, mut gate) = (Claims::new(None), waiting(0));
    // The claim reports that this gateway exists.
    assert_eq!(due(&claims, &gate, 0), Some(0));
    claims.sent(0, false, at(0));
    claims.answered(&mut gate, &answer(1, &[], 0), at(1));
    assert_eq!(due(&claims, &gate, 1), Some(1000));
    add(&mut gate, 1, at(300));
    assert!(due(&claims, &gate, 300) <= Some(300));
    claims.sent(1, true, at(300));
    add(&mut gate, 1, at(301));
    assert_eq!(due(&claims, &gate, 301), None);
    claims.answered(&mut gate, &answer(1, &[301], 310), at(301));
    // The second request came after the claim was sent.
    assert_eq!(due(&claims, &gate, 301), Some(302));
}

#[test]
fn an_unsatisfied_gate_claims_at_the_reported_instant_and_at_least_every_25_ms() {
    let (mut claims, mut gate) = (Claims::new(None), waiting(20));
    claims.sent(20, true, at(100));
    claims.answered(&mut gate, &answer(2, &[110, 130], 102), at(101));
    assert_eq!(due(&claims, &gate, 101), Some(110), "not more often");
    claims.sent(18, true, at(110));
    claims.answered(&mut gate, &answer(2, &[150], 124), at(111));
    assert_eq!(due(&claims, &gate, 111), Some(124));
    claims.sent(17, true, at(124));
    claims.answered(&mut gate, &answer(2, &[900], 800), at(125));
    let found = due(&claims, &gate, 125);
    assert_eq!(found, Some(149), "others must hear of it");
}

#[test]
fn a_gate_stands_alone_at_an_equal_part_until_the_cluster_is_back() {
    let (mut claims, mut gate) = (Claims::new(None), waiting(5));
    claims.sent(20, true, at(0));
    claims.answered(&mut gate, &answer(3, &[10], 0), at(1));
    claims.sent(20, true, at(10));
    // One late answer is no reason to stand alone.
    claims.failed(&mut gate, at(60));
    assert_eq!(claims.sharing(), Sharing::Grid);
    assert!(due(&claims, &gate, 60) <= Some(60));
    claims.sent(20, true, at(60));
    claims.failed(&mut gate, at(159));
    assert_eq!(claims.sharing(), Sharing::Grid);
    claims.sent(20, true, at(160));
    claims.failed(&mut gate, at(161));
    assert_eq!(claims.sharing(), Sharing::Alone(count(3)));
    assert!(!gate.shares_grid());
    assert_eq!(due(&claims, &gate, 170), None);
    claims.found(at(500));
    assert!(due(&claims, &gate, 500) <= Some(500));
    claims.sent(20, true, at(500));
    claims.answered(&mut gate, &answer(1, &[], 0), at(501));
    assert_eq!(claims.sharing(), Sharing::Alone(count(3)));
    assert_eq!(due(&claims, &gate, 501), Some(525));
    claims.sent(20, true, at(525));
    claims.answered(&mut gate, &answer(3, &[], 0), at(526));
    assert_eq!(claims.sharing(), Sharing::Grid);
    assert!(gate.shares_grid());
}

#[test]
fn a_gate_rejoins_the_grid_after_a_second_without_the_cluster() {
    let (mut claims, mut gate) = (Claims::new(Some(count(4))), waiting(5));
    claims.sent(20, true, at(0));
    claims.failed(&mut gate, at(150));
    let found = claims.sharing();
    assert_eq!(found, Sharing::Alone(count(4)), "as the file says");
    claims.found(at(500));
    for millis in (500..1500).step_by(25) {
        assert_eq!(claims.sharing(), Sharing::Alone(count(4)));
        claims.sent(20, true, at(millis));
        claims.answered(&mut gate, &answer(1, &[], 0), at(millis));
    }
    claims.sent(20, true, at(1500));
    claims.answered(&mut gate, &answer(1, &[], 0), at(1500));
    assert_eq!(claims.sharing(), Sharing::Grid);
}

#[test]
fn a_gate_alone_takes_a_tenth_if_the_number_of_gateways_is_unknown() {
    let (mut claims, mut gate) = (Claims::new(None), waiting(1));
    claims.sent(1, true, at(0));
    claims.failed(&mut gate, at(200));
    assert_eq!(claims.sharing(), Sharing::Alone(count(10)));
    assert!((claims.part() - 0.1).abs() < 1e-9);
}
