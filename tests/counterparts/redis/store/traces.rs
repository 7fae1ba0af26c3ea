//! Tests that any trace has the same verdicts in Redis as in memory, to the nanosecond.
//!
//! The traces have joins and later changes of cost. A verdict contains the level, so equal verdicts
//! prove equal states.

use std::time::Duration;

use limit::{Algorithm, Cost, Delay, Limit};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::replay::{Change, Memory, Redis, Replays, Step};
use super::{at, nodelay, pace};
use crate::support::night::day_or_night;

/// Rates that scripts keep in the same ticks as memory.
#[rustfmt::skip]
const FINE: [&str; 9] = [
    "1r/s", "3r/s", "10r/s", "7r/250ms", "2r/7ms", "5r/m", "7r/d", "1.7r/s", "1000000r/s",
];

/// Rates with fewer ticks: a retune to them rounds.
const COARSE: [&str; 3] = ["1r/366d", "13r/366d", "4.123456r/m"];

fn limit() -> impl Strategy<Value = Limit> {
    let delay = prop_oneof![
        Just(Delay::Never),
        Just(Delay::Above(0)),
        (0..8u32).prop_map(Delay::Above)
    ];
    let burst = prop_oneof![0..10u32, Just(u32::MAX - 1)];
    let max_wait = prop::option::of((0..3_000_000u64).prop_map(Duration::from_micros));
    let cost = prop_oneof![2 => Just(1), 1 => 1..12u32];
    let above_burst = prop_oneof![2 => Just(0), 1 => 1..9u32];
    let limit = (burst, delay, max_wait, cost, above_burst);
    limit.prop_map(|(burst, delay, max_wait, cost, above_burst)| Limit {
        burst,
        delay,
        max_wait,
        // No file has a cost that exceeds the burst.
        cost: Cost::new(cost.min(burst + 1)).expect("small"),
        in_flight: None,
        above_burst,
    })
}

/// Generates the new cost of an earlier request, before one join in four.
fn change() -> impl Strategy<Value = Option<Change>> {
    let cost = prop_oneof![
        1 => Just(None),
        3 => (1..=64u32).prop_map(Cost::new),
        3 => (1..8u32).prop_map(Cost::new)
    ];
    let change = (any::<usize>(), cost).prop_map(|(which, cost)| Change { which, cost });
    prop_oneof![3 => Just(None), 1 => change.prop_map(Some)]
}

/// Generates gaps in microseconds, the limit of each join, and the change just before it.
fn joins() -> impl Strategy<Value = Vec<(u64, bool, Option<Change>)>> {
    let gap = prop_oneof![
        3 => Just(0),
        3 => 0..2_000u64,
        3 => 0..400_000u64,
        2 => (0..40u64).prop_map(|tenths| tenths * 100_000),
        1 => 0..200_000_000_000u64,
    ];
    prop::collection::vec((gap, any::<bool>(), change()), 1..60)
}

/// Generates two rates. The second is in force from some join on.
fn rates() -> impl Strategy<Value = (&'static str, &'static str, usize)> {
    let fine = || prop::sample::select(FINE.to_vec());
    let coarse = prop::sample::select(COARSE.to_vec());
    prop_oneof![
        4 => (fine(), fine(), 0..120usize),
        1 => coarse.prop_map(|rate| (rate, rate, 0)),
    ]
}

/// Checks that the verdicts agree, for as many traces as `cases`.
fn agree(algorithm: Algorithm) {
    let redis = Redis::default();
    let mut runner = TestRunner::new(Config {
        cases: day_or_night(60, 250),
        failure_persistence: None,
        ..Config::default()
    });
    let traces = (rates(), limit(), limit(), joins());
    let outcome = runner.run(&traces, |((first, second, from), one, other, joins)| {
        // A log in Redis has dropped requests that a longer period would count again. Memory keeps
        // some.
        let second = if algorithm == Algorithm::SlidingWindowLog {
            first
        } else {
            second
        };
        let paces = [pace(first, algorithm, 1), pace(second, algorithm, 2)];
        let mut micros = 0;
        let mut script = Vec::new();
        for (index, (gap, which, change)) in joins.into_iter().enumerate() {
            micros += gap;
            let now = at(0) + Duration::from_micros(micros);
            let limit = if which { one } else { other };
            // Only a leaky bucket can delay requests.
            let limit = if algorithm.queues() {
                limit
            } else {
                limit.with_above_burst(0)
            };
            let pace = &paces[usize::from(index >= from)];
            script.push(Step {
                now,
                pace,
                limit,
                change,
            });
        }
        let (in_memory, in_redis) = (
            Memory.replay(algorithm, &script),
            redis.replay(algorithm, &script),
        );
        prop_assert_eq!(in_redis, in_memory);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{algorithm}: {error}"));
}

/// Checks long logs, of which Redis reads and writes only parts.
///
/// Requests in the middle are refunded, and a lower count needs a moment in the middle.
fn agree_on_long_logs() {
    let redis = Redis::default();
    let mut runner = TestRunner::new(Config {
        cases: day_or_night(2, 12),
        failure_persistence: None,
        // A trace is long, and shrinks slowly.
        max_shrink_iters: 200,
        ..Config::default()
    });
    let gap = prop_oneof![
        2 => Just(0),
        20 => 0..6_000u64,
        1 => (0..10u64).prop_map(|tenths| tenths * 10_000),
    ];
    // Most requests have the count of the rate. The others have a third of it, or cost more.
    let limit = prop_oneof![
        20 => Just((599, 1)),
        1 => Just((199, 1)),
        1 => (2..20u32).prop_map(|cost| (599, cost)),
    ];
    let joins = prop::collection::vec((gap, limit, change()), 1500..2500);
    let algorithm = Algorithm::SlidingWindowLog;
    let outcome = runner.run(&joins, |joins| {
        let pace = pace("600r/2s", algorithm, 1);
        let mut micros = 0;
        let script: Vec<_> = joins
            .into_iter()
            .map(|(gap, (burst, cost), change)| {
                micros += gap;
                Step {
                    now: at(0) + Duration::from_micros(micros),
                    pace: &pace,
                    limit: Limit {
                        cost: Cost::new(cost).expect("small"),
                        ..nodelay(burst)
                    },
                    change,
                }
            })
            .collect();
        let in_memory = Memory.replay(algorithm, &script);
        prop_assert_eq!(redis.replay(algorithm, &script), in_memory);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn of_a_leaky_bucket() {
    agree(Algorithm::LeakyBucket);
}

#[test]
fn of_a_token_bucket() {
    agree(Algorithm::TokenBucket);
}

#[test]
fn of_fixed_windows() {
    agree(Algorithm::FixedWindow);
}

#[test]
fn of_a_sliding_log() {
    agree(Algorithm::SlidingWindowLog);
}

#[test]
fn of_a_long_sliding_log() {
    agree_on_long_logs();
}

#[test]
fn of_a_sliding_counter() {
    agree(Algorithm::SlidingWindowCounter);
}
