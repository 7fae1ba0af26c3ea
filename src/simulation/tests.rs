use super::run::{Outcome, run};

/// How many seeds run if nobody says how many.
const SEEDS: u64 = 100;

fn as_they_are(code: &str) -> String {
    code.to_owned()
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a whole number"))
}

fn expect(seed: u64) -> Outcome {
    let outcome = run(seed, as_they_are);
    if let Some(failure) = &outcome.failure {
        panic!("{failure}");
    }
    outcome
}

#[test]
fn every_seed_keeps_the_invariants() {
    if let Some(seed) = number("DRIP_SEED") {
        expect(seed);
        return;
    }
    let seeds = number("DRIP_SEEDS").unwrap_or(SEEDS);
    let outcomes = (0..seeds).map(|seed| run(seed, as_they_are));
    let (mut joins, mut failures) = (0, Vec::new());
    for outcome in outcomes {
        joins += outcome.joins;
        failures.extend(outcome.failure);
    }
    if let Some(first) = failures.first() {
        panic!("{first}\n{} of {seeds} seeds have failed", failures.len());
    }
    assert!(joins > seeds * 50, "only {joins} requests joined");
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    for seed in 0..5 {
        let (one, other) = (expect(seed), expect(seed));
        assert_eq!(one.digest, other.digest, "seed {seed}");
        assert!(one.digest.0 > 100);
    }
}
