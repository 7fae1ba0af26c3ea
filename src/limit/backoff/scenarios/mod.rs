//! Scenarios on virtual time: a gate with back-off in front of a synthetic origin.
//!
//! The origin has ten workers, takes 50 ms for a request, and is offered 150 requests a second. It
//! falls to three workers (60 requests a second) at 20 s, and recovers at 60 s.
//!
//! The gate is configured with 200r/s, unless a scenario has another rate. `room` is the number of
//! requests that may queue at the origin before it sheds. The gate is *back* when its rate is at
//! 190r/s again. The *steady time* is the time for which the rate stays at its reduced value before
//! it grows.

mod origin;
mod record;
mod scenario;
mod simulation;
mod unhelpful_cuts;

use std::time::Duration;

use testing::some_of;

use record::Record;
use scenario::Scenario;
use simulation::run;

use super::BackoffLimits;

/// Arrivals: even ones, then random ones by seed.
const SEEDS: [Option<u64>; 4] = [None, Some(1), Some(2), Some(3)];

/// Second at which the origin falls. Each value is another point in a window.
const FALLS: [f64; 4] = [20.0, 20.3, 20.5, 20.85];

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn slow(millis: u64) -> BackoffLimits {
    BackoffLimits {
        slow: Some(ms(millis)),
        ..Scenario::default().limits
    }
}

/// Runs a scenario with several patterns of arrivals and times of the origin's fall.
///
/// Short runs use one combination, long runs use all.
fn each(scenario: impl Fn() -> Scenario, check: impl Fn(&Record)) {
    // Neighbours in the list differ in both.
    let both = |nth: usize| (SEEDS[nth % 4], FALLS[(nth + nth / 4) % 4]);
    let all: Vec<_> = (0..16).map(both).collect();
    for (seed, fall) in some_of(&all, 1) {
        println!("arrivals {seed:?}, falls at {fall} s");
        let mut scenario = scenario();
        scenario.seed = seed;
        if let Some(first) = scenario.changes.first_mut() {
            first.0 = fall;
        }
        check(&run(scenario));
    }
}

/// Returns the duration of a request: exponential, with `mean` in seconds.
fn irregular(number: usize, mean: f64) -> Duration {
    let mut mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    simulation::exponential(mixed, mean)
}

fn secs(time: Option<Duration>) -> f64 {
    time.map_or(f64::INFINITY, |time| time.as_secs_f64())
}

#[test]
fn an_origin_that_sheds_gets_what_it_can_serve() {
    each(Scenario::default, |it| {
        let (good, errors) = (it.good(25, 60), it.errors(25, 60));
        let adapted = secs(it.first(20, |rate| rate <= 66.0));
        let back = secs(it.first(60, |rate| rate >= 190.0));
        println!("good {good:.1}/s, errors {errors:.4}, adapted {adapted} s, back {back} s");
        assert!(adapted <= 23.0 && back <= 105.0);
        assert!(good >= 0.95 * 60.0 && errors <= 0.06);
        assert!(it.good(85, 120) >= 0.6 * 150.0);
        assert!(it.good(110, 120) >= 0.9 * 150.0);
    });
}

#[test]
fn an_origin_that_queues_without_bound_is_kept_fast() {
    for max_in_flight in [Some(50), None] {
        let scenario = || Scenario {
            max_in_flight,
            limits: slow(250),
            room: usize::MAX,
            ..Scenario::default()
        };
        each(scenario, |it| {
            let (good, p99) = (it.good(25, 60), it.percentile(99, 25, 60));
            let last = it.states.last().map(|(_, _, limit)| *limit);
            println!("good {good:.1}/s, p99 {p99:?}, limit in the end {last:?}");
            assert!(good >= 0.97 * 60.0 && p99 <= ms(500));
            assert_eq!(last, Some(max_in_flight));
            assert!(it.good(65, 120) >= 0.93 * 150.0);
        });
    }
}

#[test]
fn permits_alone_are_enough_without_a_rate() {
    for max_in_flight in [Some(50), None] {
        let it = run(Scenario {
            rate: None,
            max_in_flight,
            limits: slow(250),
            room: usize::MAX,
            ..Scenario::default()
        });
        let (good, p99) = (it.good(25, 60), it.percentile(99, 25, 60));
        assert!(good >= 0.97 * 60.0 && p99 <= ms(500), "{good} {p99:?}");
    }
}

#[test]
fn two_kinds_of_requests_on_a_healthy_origin_are_never_cut() {
    let mixed = |number| ms(if number % 10 == 0 { 400 } else { 20 });
    for seed in some_of(&SEEDS, 1) {
        let it = run(Scenario {
            seed,
            limits: slow(600),
            max_in_flight: Some(50),
            takes: mixed,
            changes: vec![],
            room: usize::MAX,
            offered: 120.0,
            ..Scenario::default()
        });
        assert_eq!((it.cuts.len(), it.states.len()), (0, 0), "{seed:?}");
        assert!(it.good(1, 120) >= 0.93 * 120.0);
        assert!(it.percentile(92, 1, 120) >= ms(400));
    }
}

/// An origin that refuses all requests from 20 to 50 s.
fn refuses() -> Scenario {
    Scenario {
        changes: vec![(20.0, 0), (50.0, 10)],
        room: 0,
        ..Scenario::default()
    }
}

/// An origin that answers no request from 20 to 50 s.
fn hangs() -> Scenario {
    Scenario {
        room: usize::MAX,
        timeout: Duration::from_secs(5),
        max_in_flight: Some(200),
        ..refuses()
    }
}

#[test]
fn an_outage_does_not_double_the_steady_time() {
    for (name, scenario) in [("refuses", refuses as fn() -> Scenario), ("hangs", hangs)] {
        each(scenario, |it| {
            let back = secs(it.first(50, |rate| rate >= 190.0));
            let rates = it.states.iter().map(|(_, rate, _)| *rate);
            let least = rates.fold(f64::MAX, f64::min);
            let steady = it.longest_steady();
            println!("{name}: back {back} s, {least}/s at least, longest steady time {steady:?}");
            assert!(back <= 50.0 + 30.0 && steady <= Duration::from_secs(5));
            assert!((20.0..30.0).contains(&least));
            assert!(it.good(80, 120) >= 0.93 * 150.0);
        });
    }
}

#[test]
fn a_hanging_origin_is_noticed_by_slow_before_any_timeout() {
    let it = run(Scenario {
        timeout: Duration::from_secs(30),
        max_in_flight: Some(50),
        limits: slow(250),
        ..hangs()
    });
    let first = it.cuts.first().map(|(at, cuts)| (at.as_secs(), cuts.slow));
    assert!(matches!(first, Some((20..=22, true))), "{first:?}");
    let least = it.states.iter().filter_map(|(_, _, limit)| *limit).min();
    assert_eq!(least, Some(25), "one cut: a stall does not spiral");
    assert!(it.good(55, 120) >= 0.93 * 150.0);
}

#[test]
fn an_origin_at_the_edge_loses_little() {
    // Eight workers serve 160 a second, above the offered load. Seven serve 140, just below.
    for (workers, capacity) in [(8, 150.0), (7, 140.0), (6, 120.0)] {
        let scenario = || Scenario {
            changes: vec![(20.0, workers), (60.0, 10)],
            ..Scenario::default()
        };
        each(scenario, |it| {
            let (good, errors) = (it.good(25, 60), it.errors(25, 60));
            println!("{workers} workers: good {good:.1}/s, errors {errors:.4}");
            assert!(good >= 0.95 * capacity && errors <= 0.06);
            assert!(workers < 8 || it.cuts.is_empty());
        });
    }
}

#[test]
fn irregular_work_costs_some_throughput_and_no_more_errors() {
    let sheds = || Scenario {
        takes: |number| irregular(number, 0.05),
        ..Scenario::default()
    };
    each(sheds, |it| {
        let (good, errors) = (it.good(25, 60), it.errors(25, 60));
        println!("sheds: good {good:.1}/s, errors {errors:.4}");
        assert!(good >= 0.75 * 60.0 && errors <= 0.06);
    });
    let queues = || Scenario {
        max_in_flight: Some(50),
        limits: slow(250),
        room: usize::MAX,
        ..sheds()
    };
    each(queues, |it| {
        let (good, p99) = (it.good(25, 60), it.percentile(99, 25, 60));
        println!("queues: good {good:.1}/s, p99 {p99:?}");
        assert!(good >= 0.93 * 60.0 && p99 <= ms(500));
    });
}

#[test]
fn no_request_is_sent_during_retry_after() {
    let it = run(Scenario {
        changes: vec![(20.0, 0), (45.0, 10)],
        room: 0,
        retry_after: Some(Duration::from_secs(10)),
        ..Scenario::default()
    });
    let (first, _) = it.pauses[0];
    assert!(it.pauses.len() >= 2 && first <= Duration::from_millis(22_100));
    for (from, span) in &it.pauses {
        assert_eq!(*span, Duration::from_secs(10));
        let (from, until) = (*from, *from + *span);
        assert!(!it.sent.iter().any(|at| *at > from && *at < until));
    }
    assert!(secs(it.first(45, |rate| rate >= 190.0)) <= 85.0);
}
