//! Random requests at several gateways: the limit holds over all of them, in each span of time.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::simulation::{Gateway, Simulation, Store, end_of_window};
use crate::{Algorithm, Cost, Delay, Limit, Moment, Rate};

const START: Moment = Moment::from_nanos(1_800_000_000_000_000_000);

#[derive(Clone, Debug)]
struct Run {
    rate: u64,
    burst: u32,
    /// In microseconds.
    length: u64,
    /// Of each gateway: how far ahead its clock is, and how far away the store is, in
    /// microseconds.
    gateways: Vec<(u64, u64)>,
    /// The gateway to which a request comes, and the time since the one before, in microseconds.
    joins: Vec<(usize, u64)>,
}

fn run() -> impl Strategy<Value = Run> {
    (
        500..4000_u64,
        0..200_u32,
        2_000..40_000_u64,
        vec((0..5_000_000_u64, 10..3000_u64), 1..5),
        vec((0..5_usize, 0..800_u64), 1..1500),
    )
        .prop_map(|(rate, burst, length, gateways, joins)| Run {
            rate,
            burst,
            length,
            gateways,
            joins,
        })
}

fn simulated(
    run: &Run,
    algorithm: Algorithm,
    rate: Rate,
    delay: Delay,
    never_lapses: bool,
) -> Simulation {
    let limit = Limit {
        burst: run.burst,
        delay,
        max_wait: None,
        cost: Cost::ONE,
        in_flight: None,
        above_burst: 0,
    };
    let micros = Duration::from_micros;
    let gateways = run.gateways.iter();
    let gateways = gateways
        .map(|(clock, away)| Gateway::new(micros(*clock), micros(*away), limit, START))
        .collect();
    let store = Store::new(algorithm, rate, limit);
    let mut simulation = Simulation::new(store, micros(run.length), gateways, START);
    simulation.never_lapses = never_lapses;
    let mut at = START;
    for (gateway, gap) in &run.joins {
        at = at + micros(*gap);
        simulation.join(gateway % run.gateways.len(), at);
    }
    simulation.run(at + Duration::from_secs(1));
    simulation
}

/// The first span in which more went on than `rate * T + burst + 1`.
fn excess(moments: &[Moment], rate: Rate, burst: u32) -> Option<String> {
    let line = |at: Moment| {
        let nanos = at.as_nanos() - START.as_nanos();
        i128::from(nanos) * rate.ticks_per_nano()
    };
    // With `bound(index) = line - index * request`, no bound before may be more than the burst
    // above a later one.
    let mut highest = i128::MIN;
    for (index, at) in (0_u32..).zip(moments) {
        let bound = line(*at) - i128::from(index) * rate.ticks_per_request();
        highest = highest.max(bound);
        if highest - bound > i128::from(burst) * rate.ticks_per_request() {
            return Some(format!("request {index} of {}", moments.len()));
        }
    }
    None
}

fn delays(burst: u32) -> [(Algorithm, Delay); 4] {
    [
        (Algorithm::LeakyBucket, Delay::Never),
        (Algorithm::LeakyBucket, Delay::Above(0)),
        (Algorithm::LeakyBucket, Delay::Above(burst / 2)),
        (Algorithm::TokenBucket, Delay::Never),
    ]
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn buckets_let_no_more_through_in_any_span(run in run()) {
        let rate: Rate = format!("{}r/s", run.rate).parse().unwrap();
        for (algorithm, delay) in delays(run.burst) {
            let simulation = simulated(&run, algorithm, rate, delay, false);
            for gateway in &simulation.gateways {
                for (at, place) in gateway.went_on.iter().zip(&gateway.used) {
                    prop_assert!(at <= place, "{:?} after {:?}", at, place);
                }
            }
            let excess = excess(&simulation.went_on(), rate, run.burst);
            prop_assert_eq!(excess, None, "{} {:?}", algorithm, delay);
            let gateways = simulation.gateways.iter();
            let decided: usize = gateways.map(|it| it.went_on.len() + it.refused).sum();
            prop_assert_eq!(decided, run.joins.len());
        }
    }

    #[test]
    fn windows_count_each_request_that_went_on_in_them(run in run()) {
        let most = run.burst + 1;
        let rate: Rate = format!("{most}r/{}us", run.length * 7).parse().unwrap();
        for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingWindowCounter] {
            let simulation = simulated(&run, algorithm, rate, Delay::Never, false);
            let moments = simulation.went_on();
            for (index, at) in moments.iter().enumerate() {
                let end = end_of_window(rate, *at);
                let begin = end.before(rate.period());
                let within = |from: Moment, to: Moment| {
                    let so_far = moments[..=index].iter();
                    so_far.filter(|other| (from..to).contains(*other)).count() as u128
                };
                let mut count = within(begin, end);
                if algorithm == Algorithm::SlidingWindowCounter {
                    let left = end.since(*at).as_nanos();
                    let before = within(begin.before(rate.period()), begin);
                    count += before * left / rate.period().as_nanos();
                }
                prop_assert!(count <= most.into(), "{}: {} of {}", algorithm, count, most);
            }
        }
    }
}

/// The bound above finds places that are used after their time has passed.
#[test]
fn a_place_that_did_not_lapse_would_be_found() {
    // Steady requests, then none until the bucket has drained, then many at once.
    let mut joins = vec![(0, 1250); 103];
    joins.push((0, 100_000));
    joins.extend([(0, 10); 100]);
    let run = Run {
        rate: 1000,
        burst: 40,
        length: 20_000,
        gateways: vec![(0, 50)],
        joins,
    };
    let rate: Rate = "1000r/s".parse().unwrap();
    let went_on = |never_lapses: bool| {
        simulated(
            &run,
            Algorithm::TokenBucket,
            rate,
            Delay::Never,
            never_lapses,
        )
        .went_on()
    };
    assert_eq!(excess(&went_on(false), rate, run.burst), None);
    assert!(excess(&went_on(true), rate, run.burst).is_some());
}
