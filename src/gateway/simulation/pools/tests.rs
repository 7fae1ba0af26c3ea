//! Tests of shared permits of an origin, with random faults.

use std::time::Duration;

use testing::{is_long_run, seeds, some_of};

use super::plan::{PoolPlan, origin};
use super::run::{run, run_plan};
use crate::simulation::clock::Skew;
use crate::simulation::random::Random;
use crate::simulation::redis::Change;
use crate::simulation::scenario::Scenario;
use crate::simulation::tests::{broken, everyday_seeds, expect_found, on_all_processors, search};

/// Returns whether a seed runs in about a second, and has requests.
fn is_short(seed: u64) -> bool {
    let (scenario, plan) = PoolPlan::new(&mut Random::new(seed));
    let is_small = scenario.lasts <= Duration::from_secs(10) && scenario.clocks.len() <= 3;
    is_small && plan.clients.iter().any(|clients| *clients > 0)
}

#[test]
fn every_seed_keeps_the_invariants_of_shared_permits() {
    let seeds = seeds(1, 1000);
    let run = |seed| run(seed, str::to_owned);
    let outcomes = search(everyday_seeds(&seeds, is_short), run, |outcome| {
        outcome.failure.as_deref()
    });
    let started: u64 = outcomes.iter().map(|it| it.started).sum();
    let checked: u64 = outcomes.iter().map(|it| it.checked).sum();
    println!("{started} requests were at the origin, use was judged {checked} times");
    if seeds.are_many() {
        assert!(started > seeds.count() * 100 && checked > seeds.count() / 4);
    }
}

/// Seeds that have failed in longer runs pass.
///
/// The second seed takes six seconds, so only long runs include it.
#[test]
fn seeds_that_have_failed_keep_the_invariants_of_shared_permits() {
    let seeds: &[u64] = if is_long_run() {
        &[1201, 1867]
    } else {
        &[1201]
    };
    for seed in seeds {
        assert_eq!(run(*seed, str::to_owned).failure, None);
    }
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    for seed in everyday_seeds(&seeds(1, 20), is_short) {
        let [one, other] = [(); 2].map(|()| run(seed, str::to_owned).digest);
        assert_eq!(one, other, "seed {seed}");
        assert!(one.0 > 0, "seed {seed}");
    }
}

/// Shortest time for which a gateway keeps a permit. Shorter requests share it.
const TURN: Duration = Duration::from_millis(40);

/// Permits move between gateways that outnumber them.
///
/// Each gateway has one client. No client waits longer than twice the fair time, and nearly all
/// permits are used.
#[test]
fn permits_move_between_gateways() {
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
        let scenario = Scenario {
            clocks: vec![Skew::default(); gateways],
            origins: vec![origin(most, Duration::from_secs(5), true)],
            delay: (Duration::from_micros(200), Duration::from_micros(300)),
            timeout: Duration::from_millis(100),
            lasts,
            ..Scenario::default()
        };
        let plan = PoolPlan {
            clients: vec![1; gateways],
            takes: (takes, takes + 1),
            // A request that arrives just after all permits were taken waits for a complete
            // request. A permit is in transit for a moment each time it moves.
            longest: Some((fair * 2).max(takes_longest) + Duration::from_millis(10)),
            ..PoolPlan::default()
        };
        let outcome = run_plan(scenario, plan, Random::new(takes), str::to_owned);
        ((gateways, most, takes), fair, outcome)
    });
    for ((gateways, most, takes), fair, outcome) in outcomes {
        let longest = outcome.waits.iter().max().copied().unwrap_or_default();
        println!(
            "{gateways} gateways, {most} places, {takes} ms: fair {fair:?}, longest {longest:?}, {:.4} used",
            outcome.used
        );
        assert_eq!(outcome.failure, None);
        assert!(!longest.is_zero(), "nobody waited");
        // A client pauses for up to 2 ms. This time is lost if another request fits into its turn.
        let least = if takes < 40 { 0.9 } else { 0.95 };
        assert!(
            outcome.used >= least,
            "{:.4} of the places are used",
            outcome.used
        );
    }
}

/// Each of these changes breaks the script, and the simulation must detect it.
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
