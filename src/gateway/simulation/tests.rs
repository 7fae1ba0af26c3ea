//! Tests of zones and shared gates with random faults.

use std::time::Duration;

use testing::{Seeds, is_long_run, seeds, some_of};

use super::clock::Skew;
use super::random::Random;
use super::redis::Change;
use super::run::{BACKOFF, BOTH, GATES, Kind, Outcome, ZONES, run, run_scenario};
use super::scenario::{Crowd, Fault, OriginPlan, Scenario, ZonePlan};

/// Maximum number of seeds until a broken script is detected.
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
        let each = failures.iter().filter_map(|failure| failure.lines().next());
        let each = each.collect::<Vec<_>>().join("\n");
        let (failed, count) = (failures.len(), seeds.len());
        panic!("{first}\n{failed} of {count} seeds have failed:\n{each}");
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
    let all = (seeds.range().start..).filter(|seed| is_short(*seed));
    let some: Vec<_> = all.zip(seeds.range()).map(|(seed, _)| seed).collect();
    println!("Of these and the next ones: {some:?}.");
    some
}

/// Runs each case, on all processors.
pub(super) fn on_all_processors<C: Copy + Sync, T: Send>(
    cases: &[C],
    run: impl Fn(C) -> T + Sync,
) -> Vec<T> {
    let run = &run;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let some = |first: usize| {
            let own = cases.iter().skip(first).step_by(threads);
            own.map(|case| run(*case)).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || some(first)))
            .collect();
        let outcomes = threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("outcomes"));
        outcomes.collect()
    })
}

fn expect(outcome: &Outcome) {
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
    let run = |seed| run(kind, seed, str::to_owned);
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
            let [one, other] = [(); 2].map(|()| run(kind, seed, str::to_owned).digest);
            assert_eq!(one, other, "seed {seed}");
            // A few seeds end after a few steps.
            assert!(one.0 > 0, "seed {seed}");
            steps += one.0;
        }
    }
    assert!(!seeds.are_many() || steps > seeds.count() * 200, "{steps}");
}

/// Panics unless a seed detects the broken script.
///
/// The known `seed` is tried first. Others are tried in case the simulation has changed since.
pub(super) fn expect_found(what: &str, seed: u64, is_found: impl Fn(u64) -> bool) {
    let seeds = std::iter::once(seed).chain(0..SEEDS_OF_BREAKS);
    let found = { seeds }.find(|seed| is_found(*seed));
    println!("{what}: found by seed {found:?}, known {seed}");
    assert!(found.is_some(), "{what}");
}

/// Returns a script with one change.
pub(super) fn broken(code: &str, right: &str, wrong: &str) -> String {
    code.replace(right, wrong)
}

/// Each of these changes breaks a script, and the simulation must detect it.
#[test]
fn a_broken_script_is_found() {
    let breaks: [(&str, u64, Change); 6] = [
        ("the place before the last is given back, too", 25, |code| {
            broken(
                code,
                "given, next_place = true, place",
                "given, next_place = true, place - 1",
            )
        }),
        ("a free place stays free when it is taken", 44, |code| {
            broken(code, "pack(\"<d\", take_free(1))", "pack(\"<d\", free[1])")
        }),
        ("a bucket leaks twice as fast", 17, |code| {
            broken(
                code,
                "muldiv(max(now - at, 0), ",
                "muldiv(2 * max(now - at, 0), ",
            )
        }),
        ("a fixed window does not count", 35, |code| {
            broken(code, "count + accepted * cost, true", "count, true")
        }),
        ("a log forgets too early", 2, |code| {
            broken(
                code,
                "oldest + rate.period > now",
                "oldest + rate.period / 3 > now",
            )
        }),
        ("keys expire too early", 17, |code| {
            broken(code, "floor(micros / 1000) + 2", "floor(micros / 9000) + 2")
        }),
    ];
    for (what, seed, change) in breaks {
        expect_found(what, seed, |seed| {
            run(ZONES, seed, change).failure.is_some()
        });
    }
}

/// Each of these changes breaks the script of grids, and the simulation must detect it.
#[test]
fn a_broken_grid_is_found() {
    let breaks: [(&str, u64, Change); 12] = [
        ("a slot is granted again", 19, |code| {
            broken(code, "next_index = new + 1", "next_index = new")
        }),
        ("a free slot stays free when it is granted", 13, |code| {
            broken(code, "taken[at] = true", "taken[at] = false")
        }),
        ("weights do not count", 26, |code| {
            broken(
                code,
                "weights[class[1]] / all_weights * of_class",
                "1 / #living / #own.classes",
            )
        }),
        ("all take the next slot, whose turn it may be", 29, |code| {
            broken(code, "turn, turn + stride", "turn, turn + 1")
        }),
        (
            "what waited at a gateway that is silent counts",
            13,
            |code| broken(code, "now - gateway.heard >= SILENT", "false"),
        ),
        ("a gateway that is gone counts for ever", 31, |code| {
            broken(code, "now - gateway.heard < GONE", "true")
        }),
        ("what nobody wanted is lost", 2, |code| {
            broken(code, "50000, 15000", "50000, -60000")
        }),
        ("a key counts at each gateway where it waits", 1, |code| {
            broken(code, "weight * PARTS / gateways", "weight * PARTS")
        }),
        (
            "others do not hear that a key of theirs waits here",
            1,
            |code| broken(code, "post(other, name, after)", ""),
        ),
        ("a key that waits no longer counts", 1, |code| {
            broken(
                code,
                "#others / 3 + (weight > 0 and 1 or 0)",
                "#others / 3 + 1",
            )
        }),
        ("keys of a gateway that is silent count", 4, |code| {
            broken(code, "forgets = forgets or gateway.keys > 0", "")
        }),
        ("backing off changes nothing", 41, |code| {
            broken(code, "1 / (part * part_taken)", "1 / part")
        }),
    ];
    for (what, seed, change) in breaks {
        expect_found(what, seed, |seed| {
            run(GATES, seed, change).failure.is_some()
        });
    }
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
fn when_the_store_is_lost_all_fall_back_in_the_order_in_which_they_came() {
    let lasts = Duration::from_millis(300);
    for seed in 0..10 {
        let at = Duration::from_millis(200 + seed);
        let scenario = one_gateway(vec![(at, Fault::Island { lasts })]);
        expect(&run_scenario(scenario, Random::new(seed), str::to_owned));
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
    let all: Vec<u64> = (0..20).collect();
    for seed in some_of(&all, 1) {
        let at = Duration::from_millis(350 + seed);
        let scenario = Scenario {
            origins: vec![origin.clone()],
            crowd,
            ..one_gateway(vec![(at, Fault::Partition { gateway: 0, lasts })])
        };
        expect(&run_scenario(scenario, Random::new(seed), str::to_owned));
    }
}

/// Seeds that have failed in longer runs pass. Only long runs include those that take seconds.
#[test]
fn seeds_that_have_failed_keep_the_invariants() {
    expect(&run(ZONES, 4461, str::to_owned));
    for seed in some_of(&[4289, 3361, 271], 1) {
        expect(&run(BOTH, seed, str::to_owned));
    }
    if is_long_run() {
        for (kind, seed) in [(BOTH, 1977), (BOTH, 2968), (BACKOFF, 3556)] {
            expect(&run(kind, seed, str::to_owned));
        }
    }
}
