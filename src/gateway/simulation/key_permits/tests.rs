//! Tests of permits of a key that gateways share, with random faults.

use testing::{Seeds, known_seeds, seeds};

use super::history::{Faults, Outcome, run};
use crate::simulation::redis::Change;
use crate::simulation::tests::{expect_found, search};

fn all(seeds: &Seeds, faults: Faults) -> Vec<Outcome> {
    let run = |seed| run(seed, faults, str::to_owned);
    search(seeds.range(), run, |outcome| outcome.failure.as_deref())
}

/// Whatever happens to gateways, a key never has more running requests than allowed.
///
/// Gateways are killed, stopped and split from the store; calls are lost or delayed.
#[test]
fn never_more_of_a_key_run_than_may_whatever_happens_to_gateways() {
    let seeds = seeds(2, 1000);
    let outcomes = all(&seeds, Faults::OfGateways);
    let started: usize = outcomes.iter().map(|it| it.started).sum();
    let is_enough = !seeds.are_many() || started > outcomes.len() * 20;
    assert!(is_enough, "only {started} have run");
}

/// Data that the store loses are reported again within a second.
#[test]
fn lost_data_is_reported_again() {
    all(&seeds(2, 1000), Faults::OfTheStore);
}

#[test]
fn permits_are_used_while_requests_wait() {
    // The mean of few seeds is sometimes below the bound.
    let seeds = known_seeds(2, 0..2, 1000);
    let outcomes = all(&seeds, Faults::None);
    let used: Vec<f64> = outcomes.iter().filter_map(|it| it.used).collect();
    let mean = used.iter().sum::<f64>() / used.len().max(1) as f64;
    let least = used.iter().copied().fold(1.0, f64::min);
    println!(
        "used: {mean:.3}, at least {least:.3}, of {} seeds",
        used.len()
    );
    assert!(seeds.is_single() || mean > 0.9, "{mean}");
}

/// Each of these changes breaks the script, and the simulation must detect it.
#[test]
fn a_broken_script_of_permits_is_found() {
    let breaks: [(&str, u64, Change); 5] = [
        ("one more than may", 43, |code| {
            code.replace(
                "most - others - places - before",
                "most + 1 - others - places - before",
            )
        }),
        (
            "places of a gateway that vanished are free at once",
            8,
            |code| {
                code.replace(
                    "own.places > 0 and kept or GONE",
                    "own.places > 0 and 100000 or GONE",
                )
            },
        ),
        ("what was granted is taken away", 13, |code| {
            code.replace("max(has, min(wanted, own.places - yields))", "has")
        }),
        ("a call that comes late counts", 0, |code| {
            code.replace("own and number <= own.number", "false")
        }),
        ("what a gateway has is not believed", 0, |code| {
            code.replace(
                "max(has, min(wanted, own.places - yields))",
                "own.places - yields",
            )
        }),
    ];
    for (what, seed, change) in breaks {
        expect_found(what, seed, |seed| {
            let fails = |faults| run(seed, faults, change).failure.is_some();
            fails(Faults::OfGateways) || fails(Faults::OfTheStore)
        });
    }
}
