//! Tests of zones and shared gates with random faults.
//!
//! A seed defines all random choices of a run. The invariants must hold in each run, and a script
//! with a fault must break one.

use std::time::Duration;

use testing::{Seeds, is_long_run, seeds, some_of};

use super::clock::Skew;
use super::random::Random;
use super::redis::Change;
use super::run::{BACKOFF, BOTH, GATES, Kind, Outcome, ZONES, run, run_scenario};
use super::scenario::{Crowd, Fault, OriginPlan, Scenario, ZonePlan};

/// Maximum number of seeds that are tried until one finds a broken script.
const SEEDS_OF_BREAKS: u64 = 100;

/// Runs all seeds on all processors.
///
/// Panics with the complete first failure, and a line for each further one.
pub(super) fn search<T: Send>(
    seeds: impl IntoIterator<Item = u64>,
    run: impl Fn(u64) -> T + Sync,
    failure: impl Fn(&T) -> Option<&str>,
) -> Vec<T> {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let outcomes = on_all_processors(&seeds, run);
    let failures: Vec<_> = outcomes.iter().filter_map(failure).collect();
    if let Some(first) = failures.first() {
        let lines = failures.iter().filter_map(|failure| failure.lines().next());
        let lines = lines.collect::<Vec<_>>().join("\n");
        let (failed, count) = (failures.len(), seeds.len());
        panic!("{first}\n{failed} of {count} seeds have failed:\n{lines}");
    }
    outcomes
}

/// Returns the seeds of a long run or of `DRIP_SEED`, or else the first ones that `is_short`.
///
/// Some seeds take ten seconds: only long runs include them.
pub(super) fn everyday_seeds(seeds: &Seeds, is_short: impl Fn(u64) -> bool) -> Vec<u64> {
    if seeds.is_single() || is_long_run() {
        return seeds.range().collect();
    }
    let short = (seeds.range().start..).filter(|seed| is_short(*seed));
    let chosen: Vec<_> = short.take(seeds.range().count()).collect();
    println!("Seeds: {chosen:?}.");
    chosen
}

/// Runs each case, on all processors.
pub(super) fn on_all_processors<C: Copy + Sync, T: Send>(
    cases: &[C],
    run: impl Fn(C) -> T + Sync,
) -> Vec<T> {
    let run = &run;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        // Each thread runs every n-th case.
        let run_from = |first: usize| {
            let own = cases.iter().skip(first).step_by(threads);
            own.map(|case| run(*case)).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || run_from(first)))
            .collect();
        let outcomes = threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("outcomes"));
        outcomes.collect()
    })
}

/// Panics if the outcome is a failure.
fn expect_success(outcome: &Outcome) {
    if let Some(failure) = &outcome.failure {
        panic!("{failure}");
    }
}

#[test]
fn every_seed_keeps_the_invariants() {
    if let Some(sums) = run_seeds(&seeds(5, 3000), |_| true, ZONES) {
        assert!(sums.joins > sums.seeds * 50, "{sums:?}");
        assert!(sums.leased > sums.seeds * 2, "{sums:?}");
    }
}

#[test]
fn every_seed_keeps_the_invariants_of_shared_gates() {
    if let Some(sums) = run_seeds(&seeds(2, 2000), |_| true, GATES) {
        let [in_slots, alone, fair, _] = sums.at_gates;
        let is_enough = in_slots > sums.seeds * 100 && alone.min(fair) > sums.seeds * 5;
        assert!(is_enough, "{sums:?}");
    }
}

#[test]
fn every_seed_keeps_the_invariants_of_zones_and_gates_that_share_a_link() {
    if let Some(sums) = run_seeds(&seeds(1, 2000), |_| true, BOTH) {
        let [in_slots, alone, ..] = sums.at_gates;
        let is_enough = in_slots > sums.seeds * 100 && alone > sums.seeds * 5;
        assert!(is_enough, "{sums:?}");
        let in_zones = sums.joins - in_slots - alone;
        assert!(in_zones > sums.seeds * 50, "{sums:?}");
    }
}

#[test]
fn every_seed_keeps_the_invariants_of_gates_that_back_off_together() {
    if let Some(sums) = run_seeds(&seeds(1, 1000), backs_off_shortly, BACKOFF) {
        assert!(sums.at_gates[3] > sums.seeds * 20, "{sums:?}");
    }
}

/// Returns whether a seed of gates that back off runs in about two seconds.
fn backs_off_shortly(seed: u64) -> bool {
    let scenario = Scenario::of_backoff(&mut Random::new(seed));
    let is_slow = scenario.origins[0].rate.per_second() <= 60.0;
    is_slow && scenario.clocks.len() <= 2 && scenario.lasts <= Duration::from_secs(10)
}

/// Sums over all outcomes: see [`Outcome`].
#[derive(Debug, Default)]
struct Sums {
    seeds: u64,
    joins: u64,
    leased: u64,
    at_gates: [u64; 4],
}

/// Runs the seeds. Returns their sums if there are enough seeds for bounds on the sums.
fn run_seeds(seeds: &Seeds, is_short: fn(u64) -> bool, kind: Kind) -> Option<Sums> {
    let run = |seed| run(kind, seed, Change::NONE);
    let chosen = everyday_seeds(seeds, is_short);
    let outcomes = search(chosen, run, |outcome| outcome.failure.as_deref());
    let mut sums = Sums::default();
    for outcome in outcomes {
        sums.seeds += 1;
        sums.joins += outcome.joins;
        sums.leased += outcome.leased;
        for (sum, count) in sums.at_gates.iter_mut().zip(outcome.at_gates) {
            *sum += count;
        }
    }
    println!("{sums:?}");
    seeds.are_many().then_some(sums)
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    let seeds = seeds(1, 50);
    let mut steps = 0;
    for seed in seeds.range() {
        for kind in [ZONES, GATES] {
            let [one, other] = [(); 2].map(|()| run(kind, seed, Change::NONE).digest);
            assert_eq!(one, other, "seed {seed}");
            // A few seeds end after a few steps.
            assert!(one.0 > 0, "seed {seed}");
            steps += one.0;
        }
    }
    assert!(!seeds.are_many() || steps > seeds.count() * 200, "{steps}");
}

/// Checks that the simulation finds each change that breaks a script.
///
/// `breaks` has a change a line: effect | seed that finds it | code | wrong code. Without wrong
/// code, the code is deleted. `\n` stands for a line break. Other seeds are tried in case the
/// simulation has changed since.
pub(super) fn expect_all_found(breaks: &str, is_found: impl Fn(u64, Change) -> bool) {
    for line in breaks.trim().lines() {
        let mut columns = line.split(" | ");
        let mut column = || columns.next().unwrap_or_default();
        let (effect, known) = (column(), column());
        let [right, wrong] = [column(), column()].map(|code| &*code.replace("\\n", "\n").leak());
        let known: u64 = known.parse().expect("a seed");
        let mut seeds = std::iter::once(known).chain(0..SEEDS_OF_BREAKS);
        let found = seeds.find(|seed| is_found(*seed, Change { right, wrong }));
        println!("{effect}: found by seed {found:?}, known {known}");
        assert!(found.is_some(), "{effect}");
    }
}

/// Changes that break the script of zones, as in [`expect_all_found`].
const BROKEN_ZONES: &str = r#"
the slot before the returned one is returned, too | 25 | given, next_place = true, place | given, next_place = true, place - 1
a free slot stays free when it is taken | 44 | pack("<d", take_free(1)) | pack("<d", free[1])
a bucket leaks twice as fast | 17 | muldiv(max(now - at, 0) | muldiv(2 * max(now - at, 0)
a fixed window does not count | 35 | count + accepted * cost, true | count, true
a log forgets too early | 2 | oldest + rate.period > now | oldest + rate.period / 3 > now
keys expire too early | 17 | floor(micros / 1000) + 2 | floor(micros / 9000) + 2
"#;

/// Changes that break the script of grids, as in [`expect_all_found`].
const BROKEN_GRIDS: &str = r"
a slot is granted again | 19 | next_index = new + 1 | next_index = new
a free slot stays free when it is granted | 13 | taken[at] = true | taken[at] = false
weights do not count | 26 | weights[class[1]] / all_weights * of_class | 1 / #living / #own.classes
each gateway takes the next slot, whoever has the turn | 29 | turn, turn + stride | turn, turn + 1
the waiters at a silent gateway count | 13 | now - gateway.heard >= SILENT | false
a gateway that is gone counts forever | 31 | now - gateway.heard < GONE | true
slots that nobody wanted are lost | 2 | 50000, 15000 | 50000, -60000
a key counts at each gateway where it waits | 1 | weight * PARTS / gateways | weight * PARTS
other gateways do not hear that one of their keys waits here | 1 | post(other, name, after)
a key that waits no longer counts | 1 | #others / 3 + (weight > 0 and 1 or 0) | #others / 3 + 1
keys of a silent gateway count | 4 | forgets = forgets or gateway.keys > 0
backing off changes nothing | 41 | 1 / (part * part_taken) | 1 / part
";

#[test]
fn a_broken_script_is_found() {
    expect_all_found(BROKEN_ZONES, |seed, change| {
        run(ZONES, seed, change).failure.is_some()
    });
}

#[test]
fn a_broken_grid_is_found() {
    expect_all_found(BROKEN_GRIDS, |seed, change| {
        run(GATES, seed, change).failure.is_some()
    });
}

/// Returns a scenario of one gateway with one key in one zone, and these faults.
fn one_gateway(faults: Vec<(Duration, Fault)>) -> Scenario {
    Scenario {
        clocks: vec![Skew::default()],
        zones: vec![ZonePlan::of("100r/s", 20)],
        delay: (Duration::from_micros(300), Duration::from_micros(400)),
        timeout: Duration::from_millis(50),
        lasts: Duration::from_millis(600),
        pause: Duration::from_millis(8),
        faults,
        ..Scenario::default()
    }
}

/// Requests that arrive while earlier ones wait for the store are not decided before them.
#[test]
fn when_the_store_is_lost_requests_are_decided_in_the_order_of_arrival() {
    let lasts = Duration::from_millis(300);
    for seed in 0..10 {
        let begin = Duration::from_millis(200 + seed);
        let scenario = one_gateway(vec![(begin, Fault::Island { lasts })]);
        expect_success(&run_scenario(scenario, Random::new(seed), Change::NONE));
    }
}

/// A late claim lets no request overtake another.
///
/// A gate whose claim is late closes the connection. Joins sent over it are decided before joins
/// over the next connection.
#[test]
fn a_late_claim_lets_no_request_overtake_another() {
    let origin = OriginPlan {
        gateways: Some(1),
        ..OriginPlan::of("50r/s".parse().expect("a rate"))
    };
    let crowd = Crowd {
        first: 100,
        takes: 5,
        ..Crowd::default()
    };
    let lasts = Duration::from_millis(40);
    let seeds: Vec<u64> = (0..20).collect();
    for seed in some_of(&seeds, 1) {
        let begin = Duration::from_millis(350 + seed);
        let scenario = Scenario {
            origins: vec![origin.clone()],
            crowd,
            ..one_gateway(vec![(begin, Fault::Partition { gateway: 0, lasts })])
        };
        expect_success(&run_scenario(scenario, Random::new(seed), Change::NONE));
    }
}

/// Seeds that have failed in longer runs pass. Only long runs include those that take seconds.
#[test]
fn seeds_that_have_failed_keep_the_invariants() {
    expect_success(&run(ZONES, 4461, Change::NONE));
    for seed in some_of(&[4289, 3361, 271], 1) {
        expect_success(&run(BOTH, seed, Change::NONE));
    }
    if is_long_run() {
        for (kind, seed) in [(BOTH, 1977), (BOTH, 2968), (BACKOFF, 3556)] {
            expect_success(&run(kind, seed, Change::NONE));
        }
    }
}
