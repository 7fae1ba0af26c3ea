use std::time::Duration;

use testing::{is_long_run, seeds, some_of};

use super::plan::PoolPlan;
use super::run::{Outcome, run, run_plan};
use crate::simulation::clock::Skew;
use crate::simulation::random::Random;
use crate::simulation::redis::Change;
use crate::simulation::tests::{everyday_seeds, expect_found, on_all_processors, search};

fn expect(outcome: &Outcome) {
    if let Some(failure) = &outcome.failure {
        panic!("{failure}");
    }
}

/// Whether a seed is run in about a second, and has requests.
fn is_short(seed: u64) -> bool {
    PoolPlan::new(&mut Random::new(seed)).is_short()
}

#[test]
fn every_seed_keeps_the_invariants_of_shared_places() {
    let seeds = seeds(1, 1000);
    let run = |seed| run(seed, str::to_owned);
    let outcomes = search(everyday_seeds(&seeds, is_short), run, |outcome| {
        outcome.failure.as_deref()
    });
    let started: u64 = outcomes.iter().map(|it| it.started).sum();
    assert!(
        seeds.is_single() || started > 0,
        "no request was at the origin"
    );
    if !seeds.are_many() {
        return;
    }
    let seeds = seeds.count();
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

/// These have failed in longer runs. The second one takes six seconds, and runs in long runs alone.
#[test]
fn seeds_that_have_failed_keep_the_invariants_of_shared_places() {
    let seeds: &[u64] = if is_long_run() {
        &[1201, 1867]
    } else {
        &[1201]
    };
    for seed in seeds {
        expect(&run(*seed, str::to_owned));
    }
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    for seed in everyday_seeds(&seeds(1, 20), is_short) {
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
    // Nothing is measured before 3.5 s.
    let lasts = Duration::from_secs(if is_long_run() { 9 } else { 6 });
    let plans = some_of(&PLANS, 1);
    let outcomes = on_all_processors(&plans, |(gateways, most, takes)| {
        let parts = u32::try_from(gateways - most).unwrap();
        let takes_longest = Duration::from_millis(takes);
        let fair = takes_longest.max(TURN) * parts / u32::try_from(most).unwrap();
        let plan = PoolPlan {
            clocks: vec![Skew::default(); gateways],
            clients: vec![1; gateways],
            most,
            takes: (takes, takes + 1),
            lasts,
            // Who comes just after all places were taken at once waits for a whole request. A place is on its way
            // for a moment at each turn.
            longest: Some((fair * 2).max(takes_longest) + Duration::from_millis(10)),
            ..PoolPlan::calm()
        };
        let outcome = run_plan(plan, Random::new(takes), str::to_owned);
        ((gateways, most, takes), fair, outcome)
    });
    for ((gateways, most, takes), fair, outcome) in outcomes {
        let longest = outcome.waits.iter().max().copied().unwrap_or_default();
        println!(
            "{gateways} gateways, {most} places, {takes} ms: fair {fair:?}, longest {longest:?}, {:.4} used",
            outcome.used
        );
        expect(&outcome);
        assert!(!longest.is_zero(), "nobody waited");
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
    let breaks: [(&str, u64, Change); 2] = [
        (
            "places of a gateway that vanished are free at once",
            1966,
            |code| broken(code, "now < g.ends + g.orphan", "false"),
        ),
        ("an empty store lends at once", 364, |code| {
            broken(
                code,
                "else\n    recovers = now + LEASE",
                "else\n    recovers = 0",
            )
        }),
    ];
    for (what, seed, change) in breaks {
        expect_found(what, seed, |seed| run(seed, change).failure.is_some());
    }
}
