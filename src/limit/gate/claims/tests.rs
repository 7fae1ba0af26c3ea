//! Tests of the claims of a gate: messages by which it asks the store for slots.
//!
//! A *slot* is an instant at which a request may leave. Several gates share one *grid* of slots,
//! and the store *grants* each slot to one of them.

use super::*;
use crate::fixtures::{START, at, millis_of, nonzero};
use crate::{Cost, GateLimits, Share};

type TestGate = Gate<u8, u32>;

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

/// Adds waiters.
fn add(gate: &mut TestGate, requests: u32, now: Moment) {
    for number in 0..requests {
        gate.join(&Share::of(1), Cost::ONE, now, || number);
    }
}

/// Returns an answer that grants `slots`, and more slots from `again` on (in milliseconds).
fn answer(gateways: u32, slots: &[u64], again: u64) -> GridAnswer {
    let slots: Vec<Moment> = slots.iter().map(|slot| at(*slot)).collect();
    GridAnswer {
        gateways: nonzero(gateways),
        part: 0.5,
        rate: "100r/s".parse().unwrap(),
        free: slots.last().map_or(START, |last| *last),
        again: at(again),
        classes: Vec::new(),
        keys: KeyNews::default(),
        slots,
    }
}

/// A gate, and the claims that it makes.
struct Claimant {
    claims: Claims,
    gate: TestGate,
}

impl Claimant {
    /// Returns a gate with a number of waiters. `expected`: the configured number of gateways.
    fn new(expected: Option<u32>, waiters: u32) -> Self {
        Self {
            claims: Claims::new(expected.map(nonzero)),
            gate: waiting(waiters),
        }
    }

    /// Sends a claim at `sent`, which is answered at `answered`.
    fn claim(&mut self, requested: u64, sent: u64, answer: &GridAnswer, answered: u64) {
        self.claims.sent(requested, requested > 0, at(sent));
        self.claims.answered(&mut self.gate, answer, at(answered));
    }

    /// Sends a claim at `sent`, which fails at `failed`.
    fn fail(&mut self, sent: u64, failed: u64) {
        self.claims.sent(20, true, at(sent));
        self.claims.failed(&mut self.gate, at(failed));
    }

    /// Returns when the next claim is due, in milliseconds.
    fn due(&self, now: u64) -> Option<u64> {
        self.claims.due(&self.gate, at(now)).map(millis_of)
    }
}

#[test]
fn the_first_waiter_claims_at_once_and_one_claim_is_in_flight() {
    let mut claimant = Claimant::new(None, 0);
    // The claim reports that this gateway exists.
    assert_eq!(claimant.due(0), Some(0));
    claimant.claim(0, 0, &answer(1, &[], 0), 1);
    assert_eq!(claimant.due(1), Some(1000));
    add(&mut claimant.gate, 1, at(300));
    assert!(claimant.due(300) <= Some(300));
    claimant.claims.sent(1, true, at(300));
    add(&mut claimant.gate, 1, at(301));
    assert_eq!(claimant.due(301), None);
    let answer = answer(1, &[301], 310);
    claimant
        .claims
        .answered(&mut claimant.gate, &answer, at(301));
    // The second request came after the claim was sent.
    assert_eq!(claimant.due(301), Some(302));
}

#[test]
fn an_unsatisfied_gate_claims_at_the_reported_instant_and_at_least_every_25_ms() {
    let mut claimant = Claimant::new(None, 20);
    // Requested slots, granted slots, the reported instant, the instant of the claim, and of the
    // next one.
    for (requested, slots, again, sent, next) in [
        // At least 10 ms apart.
        (20, &[110, 130][..], 102, 100, 110),
        (18, &[150], 124, 110, 124),
        // Other gateways must know that this one exists.
        (17, &[900], 800, 124, 149),
    ] {
        claimant.claim(requested, sent, &answer(2, slots, again), sent + 1);
        assert_eq!(claimant.due(sent + 1), Some(next), "{requested}");
    }
}

#[test]
fn a_gate_stands_alone_at_an_equal_part_until_the_cluster_is_back() {
    let mut claimant = Claimant::new(None, 5);
    claimant.claim(20, 0, &answer(3, &[10], 0), 1);
    // One late answer is no reason to stand alone.
    claimant.fail(10, 60);
    assert_eq!(claimant.claims.sharing(), Sharing::Grid);
    assert!(claimant.due(60) <= Some(60));
    claimant.fail(60, 159);
    assert_eq!(claimant.claims.sharing(), Sharing::Grid);
    claimant.fail(160, 161);
    assert_eq!(claimant.claims.sharing(), Sharing::Alone(nonzero(3)));
    assert!(!claimant.gate.shares_grid());
    assert_eq!(claimant.due(170), None);
    claimant.claims.found(at(500));
    assert!(claimant.due(500) <= Some(500));
    claimant.claim(20, 500, &answer(1, &[], 0), 501);
    assert_eq!(claimant.claims.sharing(), Sharing::Alone(nonzero(3)));
    assert_eq!(claimant.due(501), Some(525));
    claimant.claim(20, 525, &answer(3, &[], 0), 526);
    assert_eq!(claimant.claims.sharing(), Sharing::Grid);
    assert!(claimant.gate.shares_grid());
}

#[test]
fn a_gate_rejoins_the_grid_after_a_second_without_the_cluster() {
    let mut claimant = Claimant::new(Some(4), 5);
    claimant.fail(0, 150);
    claimant.claims.found(at(500));
    for millis in (500..=1500).step_by(25) {
        // As many parts as configured.
        assert_eq!(claimant.claims.sharing(), Sharing::Alone(nonzero(4)));
        claimant.claim(20, millis, &answer(1, &[], 0), millis);
    }
    assert_eq!(claimant.claims.sharing(), Sharing::Grid);
}

#[test]
fn a_gate_alone_takes_a_tenth_if_the_number_of_gateways_is_unknown() {
    let mut claimant = Claimant::new(None, 1);
    claimant.fail(0, 200);
    assert_eq!(claimant.claims.sharing(), Sharing::Alone(nonzero(10)));
    assert!((claimant.claims.part() - 0.1).abs() < 1e-9);
}
