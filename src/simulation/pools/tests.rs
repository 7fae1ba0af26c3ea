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

/// These have failed in longer runs.
#[test]
fn seeds_that_have_failed_keep_the_invariants_of_shared_places() {
    for seed in [1201, 1867] {
        expect(&run(seed, str::to_owned));
    }
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    for seed in 0..4 {
        let (one, other) = (run(seed, str::to_owned), run(seed, str::to_owned));
        assert_eq!(one.digest, other.digest, "seed {seed}");
        assert!(one.digest.0 > 100);
    }
}

/// The shortest turn: requests that are shorter share one.
const TURN: Duration = Duration::from_millis(40);

/// More gateways than places, each with one client: none waits longer than twice what is fair, and
/// nearly all places are used.
#[test]
fn places_go_round() {
    const PLANS: [(usize, usize, u64); 8] = [
        (4, 1, 50),
        (4, 1, 100),
        (3, 2, 400),
        (5, 2, 200),
        (6, 1, 300),
        (8, 3, 70),
        (6, 5, 50),
        (4, 1, 10),
    ];
    let outcomes = on_all_processors(PLANS.len() as u64, |nth| {
        let (gateways, most, takes) = PLANS[usize::try_from(nth).unwrap()];
        let parts = u32::try_from(gateways - most).unwrap();
        let takes_longest = Duration::from_millis(takes);
        let fair = takes_longest.max(TURN) * parts / u32::try_from(most).unwrap();
        let plan = PoolPlan {
            clocks: vec![Skew::default(); gateways],
            clients: vec![1; gateways],
            most,
            takes: (takes, takes + 1),
            lasts: Duration::from_secs(9),
            // Who comes just after all places were taken at once waits for a whole request. A place is on its way
            // for a moment at each turn.
            longest: Some((fair * 2).max(takes_longest) + Duration::from_millis(10)),
            ..PoolPlan::calm()
        };
        (nth, fair, run_plan(plan, Random::new(takes), str::to_owned))
    });
    for (nth, fair, outcome) in outcomes {
        let (gateways, most, takes) = PLANS[usize::try_from(nth).unwrap()];
        let longest = outcome.waits.iter().max().copied().unwrap_or_default();
        println!(
            "{gateways} gateways, {most} places, {takes} ms: fair {fair:?}, longest {longest:?}, {:.4} used",
            outcome.used
        );
        expect(&outcome);
        // A client thinks for up to 2 ms: they are lost if another request fits into its turn.
        let least = if takes < 40 { 0.9 } else { 0.95 };
        assert!(
            outcome.used >= least,
            "{:.4} of the places are used",
            outcome.used
        );
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
