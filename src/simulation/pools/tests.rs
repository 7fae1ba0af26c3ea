use std::time::Duration;

use super::plan::PoolPlan;
use super::run::{Outcome, run, run_plan};
use crate::simulation::clock::Skew;
use crate::simulation::random::Random;
use crate::simulation::redis::Change;
use crate::simulation::tests::{number, on_all_processors};

/// How many seeds run if nobody says how many.
const SEEDS: u64 = 60;
/// How many find a break at the latest.
const SEEDS_OF_BREAKS: u64 = 30;

fn expect(outcome: &Outcome) {
    if let Some(failure) = &outcome.failure {
        panic!("{failure}");
    }
}

#[test]
fn every_seed_keeps_the_invariants_of_shared_places() {
    if let Some(seed) = number("DRIP_SEED") {
        return expect(&run(seed, str::to_owned));
    }
    let seeds = number("DRIP_SEEDS").unwrap_or(SEEDS);
    let outcomes = on_all_processors(seeds, |seed| run(seed, str::to_owned));
    let failures: Vec<_> = outcomes
        .iter()
        .filter_map(|it| it.failure.as_ref())
        .collect();
    if let Some(first) = failures.first() {
        let each = failures.iter().filter_map(|it| it.lines().next());
        let each = each.collect::<Vec<_>>().join("\n");
        panic!(
            "{first}\n{} of {seeds} seeds have failed:\n{each}",
            failures.len()
        );
    }
    let started: u64 = outcomes.iter().map(|it| it.started).sum();
    let judged: u64 = outcomes.iter().map(|it| it.judged).sum();
    assert!(
        started > seeds * 100,
        "only {started} requests were at the origin"
    );
    assert!(
        judged > seeds / 4,
        "the use of places was judged only {judged} times"
    );
    println!("{seeds} seeds: {started} requests, use judged {judged} times");
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    for seed in 0..4 {
        let (one, other) = (run(seed, str::to_owned), run(seed, str::to_owned));
        assert_eq!(one.digest, other.digest, "seed {seed}");
        assert!(one.digest.0 > 100);
    }
}

/// More gateways than places, each with one client: none waits longer than twice what is fair.
#[test]
fn places_go_round() {
    for (gateways, most, takes) in [(5, 2, 200), (4, 1, 150), (6, 1, 300)] {
        let mut random = Random::new(takes);
        let plan = PoolPlan {
            clocks: vec![Skew::default(); gateways],
            clients: vec![1; gateways],
            most,
            takes: (takes, takes + 1),
            ..PoolPlan::calm()
        };
        let outcome = run_plan(plan, random.fork(), str::to_owned);
        expect(&outcome);
        // A turn lasts for a tenth of a second, or one request.
        let fair = Duration::from_millis(takes.max(100)) * u32::try_from(gateways - most).unwrap()
            / u32::try_from(most).unwrap();
        let longest = outcome.waits.iter().max().unwrap();
        println!(
            "{gateways} gateways, {most} places, {takes} ms: fair {fair:?}, {:?}, {} started",
            outcome.waits, outcome.started
        );
        assert!(*longest <= fair * 2, "{longest:?}, fair is {fair:?}");
    }
}

/// A script with one thing changed.
fn broken(code: &str, right: &str, wrong: &str) -> String {
    code.replace(right, wrong)
}

/// Each of these breaks the script.
#[test]
fn a_broken_pool_is_found() {
    let breaks: [(&str, Change); 2] = [
        (
            "places of a gateway that vanished are free at once",
            |code| broken(code, "now < g.ends + g.orphan", "false"),
        ),
        ("an empty store lends at once", |code| {
            broken(
                code,
                "else\n    recovers = now + LEASE",
                "else\n    recovers = 0",
            )
        }),
    ];
    for (what, change) in breaks {
        let found = (0..SEEDS_OF_BREAKS).find(|seed| run(*seed, change).failure.is_some());
        println!("{what}: found by seed {found:?}");
        assert!(found.is_some(), "{what}");
    }
}
