//! Tests of permits of a key that gateways share, with random faults.
//!
//! A permit is the right to run one request of the key. A seed defines the random numbers of a run.

use testing::{Seeds, known_seeds, seeds};

use super::history::{Faults, Outcome, run};
use crate::simulation::redis::Change;
use crate::simulation::tests::{expect_all_found, search};

/// Runs all seeds. Panics if one fails.
fn run_all(seeds: &Seeds, faults: Faults) -> Vec<Outcome> {
    let run = |seed| run(seed, faults, Change::NONE);
    search(seeds.range(), run, |outcome| outcome.failure.as_deref())
}

/// Whatever happens to gateways, a key never has more running requests than allowed.
///
/// Gateways are killed, stopped and split from the store; calls are lost or delayed.
#[test]
fn a_key_never_has_more_running_requests_than_allowed() {
    let seeds = seeds(2, 1000);
    let outcomes = run_all(&seeds, Faults::OfGateways);
    let started: usize = outcomes.iter().map(|it| it.started).sum();
    let is_enough = !seeds.are_many() || started > outcomes.len() * 20;
    assert!(is_enough, "only {started} have run");
}

/// Data that the store loses are reported again within a second.
#[test]
fn lost_data_is_reported_again() {
    run_all(&seeds(2, 1000), Faults::OfTheStore);
}

#[test]
fn permits_are_used_while_requests_wait() {
    // The mean of few seeds is sometimes below the bound.
    let seeds = known_seeds(2, 0..2, 1000);
    let outcomes = run_all(&seeds, Faults::None);
    let used: Vec<f64> = outcomes.iter().filter_map(|it| it.used).collect();
    let mean = used.iter().sum::<f64>() / used.len().max(1) as f64;
    let least = used.iter().copied().fold(1.0, f64::min);
    let count = used.len();
    println!("used: {mean:.3}, at least {least:.3}, of {count} seeds");
    assert!(seeds.is_single() || mean > 0.9, "{mean}");
}

/// Changes that break the script, as in [`expect_all_found`].
const BROKEN: &str = r"
one more request than allowed runs | 43 | most - others - places - before | most + 1 - others - places - before
permits of a vanished gateway are free at once | 8 | own.places > 0 and kept or GONE | own.places > 0 and 100000 or GONE
permits that were granted are taken away | 13 | max(has, min(wanted, own.places - yields)) | has
a call that arrives late counts | 0 | own and number <= own.number | false
the permits that a gateway reports are not believed | 0 | max(has, min(wanted, own.places - yields)) | own.places - yields
";

#[test]
fn a_broken_script_of_permits_is_found() {
    expect_all_found(BROKEN, |seed, change| {
        let fails = |faults| run(seed, faults, change).failure.is_some();
        fails(Faults::OfGateways) || fails(Faults::OfTheStore)
    });
}
