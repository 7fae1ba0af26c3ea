//! Scenarios on virtual time: a gate with back-off in front of a synthetic origin.
//!
//! The origin has ten workers, takes 50 ms for a request, and is offered 150 requests a second. It
//! falls to three workers (60 requests a second) at 20 s, and recovers at 60 s.
//!
//! The gate is configured with 200r/s, unless a scenario has another rate. `room` is the number of
//! requests that may queue at the origin before it *sheds* (rejects) more. The gate is *back* when
//! its rate is at 190r/s again. The *steady time* is the time for which the rate stays at its
//! reduced value before it grows. A *cut* lowers the rate or the number of requests in flight.
//!
//! In an assertion, `record` is the [`Record`] of a run: `good(from, to)` is the number of good
//! answers a second between two seconds, and `errors(from, to)` the share of the others.

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

use super::tests::slow;
use crate::fixtures::{ms, secs};

/// Arrivals: even ones, then random ones by seed.
const SEEDS: [Option<u64>; 4] = [None, Some(1), Some(2), Some(3)];

/// Second at which the origin falls. Each value is another point in a window.
const FALLS: [f64; 4] = [20.0, 20.3, 20.5, 20.85];

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

/// Returns the service time of a request by its number: exponential, with `mean` in seconds.
fn irregular(number: usize, mean: f64) -> Duration {
    let bits = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    simulation::exponential(crate::mixed(bits), mean)
}

/// Returns the seconds until an instant; infinity if it never came.
fn seconds_until(time: Option<Duration>) -> f64 {
    time.map_or(f64::INFINITY, |time| time.as_secs_f64())
}

#[test]
fn an_origin_that_sheds_gets_what_it_can_serve() {
    each(Scenario::default, |record| {
        let (good, errors) = (record.good(25, 60), record.errors(25, 60));
        let adapted = seconds_until(record.first(20, |rate| rate <= 66.0));
        let back = seconds_until(record.first(60, |rate| rate >= 190.0));
        println!("good {good:.1}/s, errors {errors:.4}, adapted {adapted} s, back {back} s");
        assert!(adapted <= 23.0 && back <= 105.0);
        assert!(good >= 0.95 * 60.0 && errors <= 0.06);
        assert!(record.good(85, 120) >= 0.6 * 150.0);
        assert!(record.good(110, 120) >= 0.9 * 150.0);
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
        each(scenario, |record| {
            let (good, p99) = (record.good(25, 60), record.percentile(99, 25, 60));
            let last = record.states.last().map(|state| state.max_in_flight);
            println!("good {good:.1}/s, p99 {p99:?}, limit in the end {last:?}");
            assert!(good >= 0.97 * 60.0 && p99 <= ms(500));
            assert_eq!(last, Some(max_in_flight));
            assert!(record.good(65, 120) >= 0.93 * 150.0);
        });
    }
}

#[test]
fn permits_alone_are_enough_without_a_rate() {
    for max_in_flight in [Some(50), None] {
        let record = run(Scenario {
            rate: None,
            max_in_flight,
            limits: slow(250),
            room: usize::MAX,
            ..Scenario::default()
        });
        let (good, p99) = (record.good(25, 60), record.percentile(99, 25, 60));
        assert!(good >= 0.97 * 60.0 && p99 <= ms(500), "{good} {p99:?}");
    }
}

#[test]
fn two_kinds_of_requests_on_a_healthy_origin_are_never_cut() {
    let two_kinds = |number| ms(if number % 10 == 0 { 400 } else { 20 });
    for seed in some_of(&SEEDS, 1) {
        let record = run(Scenario {
            seed,
            limits: slow(600),
            max_in_flight: Some(50),
            takes: two_kinds,
            changes: vec![],
            room: usize::MAX,
            offered: 120.0,
            ..Scenario::default()
        });
        assert_eq!((record.cuts.len(), record.states.len()), (0, 0), "{seed:?}");
        assert!(record.good(1, 120) >= 0.93 * 120.0);
        assert!(record.percentile(92, 1, 120) >= ms(400));
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
        timeout: secs(5),
        max_in_flight: Some(200),
        ..refuses()
    }
}

#[test]
fn an_outage_does_not_double_the_steady_time() {
    for (name, scenario) in [("refuses", refuses as fn() -> Scenario), ("hangs", hangs)] {
        each(scenario, |record| {
            let back = seconds_until(record.first(50, |rate| rate >= 190.0));
            let rates = record.states.iter().map(|state| state.rate);
            let least = rates.fold(f64::MAX, f64::min);
            let steady = record.longest_steady();
            println!("{name}: back {back} s, {least}/s at least, longest steady time {steady:?}");
            assert!(back <= 50.0 + 30.0 && steady <= secs(5));
            assert!((20.0..30.0).contains(&least));
            assert!(record.good(80, 120) >= 0.93 * 150.0);
        });
    }
}

#[test]
fn a_hanging_origin_is_noticed_by_slow_before_any_timeout() {
    let record = run(Scenario {
        timeout: secs(30),
        max_in_flight: Some(50),
        limits: slow(250),
        ..hangs()
    });
    let first = record
        .cuts
        .first()
        .map(|(at, cuts)| (at.as_secs(), cuts.slow));
    assert!(matches!(first, Some((20..=22, true))), "{first:?}");
    assert_eq!(
        record.least_limit(),
        Some(25),
        "one cut: a stall does not spiral"
    );
    assert!(record.good(55, 120) >= 0.93 * 150.0);
}

#[test]
fn an_origin_at_the_edge_loses_little() {
    // Eight workers serve 160 a second, above the offered load. Seven serve 140, just below.
    for (workers, capacity) in [(8, 150.0), (7, 140.0), (6, 120.0)] {
        let scenario = || Scenario {
            changes: vec![(20.0, workers), (60.0, 10)],
            ..Scenario::default()
        };
        each(scenario, |record| {
            let (good, errors) = (record.good(25, 60), record.errors(25, 60));
            println!("{workers} workers: good {good:.1}/s, errors {errors:.4}");
            assert!(good >= 0.95 * capacity && errors <= 0.06);
            assert!(workers < 8 || record.cuts.is_empty());
        });
    }
}

#[test]
fn irregular_work_costs_some_throughput_and_no_more_errors() {
    let sheds = || Scenario {
        takes: |number| irregular(number, 0.05),
        ..Scenario::default()
    };
    each(sheds, |record| {
        let (good, errors) = (record.good(25, 60), record.errors(25, 60));
        println!("sheds: good {good:.1}/s, errors {errors:.4}");
        assert!(good >= 0.75 * 60.0 && errors <= 0.06);
    });
    let queues = || Scenario {
        max_in_flight: Some(50),
        limits: slow(250),
        room: usize::MAX,
        ..sheds()
    };
    each(queues, |record| {
        let (good, p99) = (record.good(25, 60), record.percentile(99, 25, 60));
        println!("queues: good {good:.1}/s, p99 {p99:?}");
        assert!(good >= 0.93 * 60.0 && p99 <= ms(500));
    });
}

#[test]
fn no_request_is_sent_during_retry_after() {
    let record = run(Scenario {
        changes: vec![(20.0, 0), (45.0, 10)],
        room: 0,
        retry_after: Some(secs(10)),
        ..Scenario::default()
    });
    let (first, _) = record.pauses[0];
    assert!(record.pauses.len() >= 2 && first <= ms(22_100));
    for (from, length) in &record.pauses {
        assert_eq!(*length, secs(10));
        let is_paused = |at: &Duration| *at > *from && *at < *from + *length;
        assert!(!record.sent.iter().any(is_paused));
    }
    assert!(seconds_until(record.first(45, |rate| rate >= 190.0)) <= 85.0);
}
