use super::history::{Faults, Outcome, run};
use crate::simulation::redis::Change;
use crate::simulation::tests::{number, on_all_processors};

/// How many seeds run if nobody says how many.
const SEEDS: u64 = 20;
/// How many find a break at the latest.
const SEEDS_OF_BREAKS: u64 = 60;

fn all(faults: Faults) -> Vec<Outcome> {
    if let Some(seed) = number("DRIP_SEED") {
        let outcome = run(seed, faults, str::to_owned);
        assert_eq!(outcome.failure, None);
        return vec![outcome];
    }
    let seeds = number("DRIP_SEEDS").unwrap_or(SEEDS);
    let outcomes = on_all_processors(seeds, |seed| run(seed, faults, str::to_owned));
    let failures: Vec<_> = outcomes
        .iter()
        .filter_map(|it| it.failure.as_ref())
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
    outcomes
}

/// Gateways are killed, stand still and are split from the store; calls are lost and come late.
#[test]
fn never_more_of_a_key_run_than_may_whatever_happens_to_gateways() {
    let outcomes = all(Faults::OfGateways);
    let started: usize = outcomes.iter().map(|it| it.started).sum();
    assert!(started > outcomes.len() * 20, "only {started} have run");
}

/// What the store forgets is forgiven once, and told again within a second.
#[test]
fn what_the_store_forgets_is_told_again() {
    all(Faults::OfTheStore);
}

#[test]
fn places_are_used_while_somebody_waits() {
    let outcomes = all(Faults::None);
    let used: Vec<f64> = outcomes.iter().filter_map(|it| it.used).collect();
    #[allow(clippy::cast_precision_loss)]
    let mean = used.iter().sum::<f64>() / used.len().max(1) as f64;
    let least = used.iter().copied().fold(1.0, f64::min);
    println!(
        "used: {mean:.3}, at least {least:.3}, of {} seeds",
        used.len()
    );
    assert!(mean > 0.9, "{mean}");
}

/// Each of these breaks the script.
#[test]
fn a_broken_script_of_places_is_found() {
    let breaks: [(&str, Change); 5] = [
        ("one more than may", |code| {
            code.replace(
                "most - others - places - before",
                "most + 1 - others - places - before",
            )
        }),
        (
            "places of a gateway that vanished are free at once",
            |code| {
                code.replace(
                    "own.places > 0 and kept or GONE",
                    "own.places > 0 and 100000 or GONE",
                )
            },
        ),
        ("what was granted is taken away", |code| {
            code.replace("max(has, min(wanted, own.places - yields))", "has")
        }),
        ("a call that comes late counts", |code| {
            code.replace("own and number <= own.number", "false")
        }),
        ("what a gateway has is not believed", |code| {
            code.replace(
                "max(has, min(wanted, own.places - yields))",
                "own.places - yields",
            )
        }),
    ];
    for (what, change) in breaks {
        let found = (0..SEEDS_OF_BREAKS).find(|seed| {
            let fails = |faults| run(*seed, faults, change).failure.is_some();
            fails(Faults::OfGateways) || fails(Faults::OfTheStore)
        });
        println!("{what}: found by seed {found:?}");
        assert!(found.is_some(), "{what}");
    }
}
