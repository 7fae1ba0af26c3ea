//! Tests of the experiment of `find` on simulated origins.
//!
//! An experiment raises the rate of an origin, or its permits (requests at once), step by step
//! until its objective, such as p95<400ms, is no longer kept. So it finds the capacity.

use limit::find::{
    Criterion, Experiment, FindSettings, Found, Level, Levels, Objective, Observed, Outcome,
    Target, Timing,
};
use limit::{Moment, Rate};
use testing::{known_seeds, some_of};

use super::origins::{KINDS, Kind, TO};
use super::run::{self, Arrivals, Demand, Run};
use crate::simulation::random::Random;

/// Returns the settings of an experiment that searches for the highest rate of such an origin.
fn settings(kind: &Kind) -> FindSettings {
    FindSettings {
        target: Target::Rate {
            from: kind.from.parse().unwrap(),
            to: TO.parse().unwrap(),
        },
        objective: kind.objective.parse().unwrap(),
        step: "5%".parse().unwrap(),
        timing: Timing::default(),
    }
}

/// Runs an experiment with an origin of a kind.
fn run(kind: &Kind, settings: FindSettings, demand: &mut Demand, seed: u64) -> Run {
    let mut random = Random::new(seed);
    let mut origin = (kind.make)(&mut random);
    let experiment = Experiment::new(settings, Observed::default(), Moment::default());
    run::run(experiment, &mut *origin, demand, &mut random)
}

/// Returns the level: requests a second, or permits.
fn number(level: Level) -> f64 {
    match level {
        Level::Rate(rate) => rate.per_second(),
        Level::Permits(permits) => f64::from(permits),
    }
}

/// Returns the rate that an experiment has set, in requests a second; 0 if none.
fn rate(levels: &Levels) -> f64 {
    levels.rate.map_or(0.0, Rate::per_second)
}

/// Returns the capacity that an experiment has found.
fn found(run: &Run) -> Option<Found> {
    match run.report.outcome {
        Some(Outcome::Found(found)) => Some(found),
        _ => None,
    }
}

/// Returns the longest time for which a run was more than a step above the true capacity.
fn seconds_above(run: &Run, truth: f64) -> f64 {
    let ends = run.levels.iter().skip(1).map(|(begin, _)| *begin);
    let (mut since, mut longest) = (None, 0.0_f64);
    for ((begin, levels), end) in run.levels.iter().zip(ends.chain([run.seconds])) {
        if rate(levels) > truth * 1.0501 {
            longest = longest.max(end - *since.get_or_insert(*begin));
        } else {
            since = None;
        }
    }
    longest
}

/// Runs the experiments with one origin, checks and prints their results.
///
/// Returns the mean duration in seconds.
fn find_all(kind: &Kind) -> f64 {
    // The bounds are for the share of experiments, and a few experiments exceed one. With seed 1
    // the result of the pausing origin lies outside the printed range.
    let seeds = known_seeds(1, 2..5, 350);
    let count = seeds.count() as f64;
    // Experiments that found the capacity within 10 %, whose printed range contains it, and that
    // were too high for long.
    let (mut within, mut in_range, mut over) = (0.0, 0.0, 0.0);
    let mut took = 0.0;
    for seed in seeds.range() {
        let run = run(kind, settings(kind), &mut Demand::Endless, seed);
        if seeds.is_single() {
            println!("{:#?}", run.report);
            return run.seconds;
        }
        let bounds = [kind.from, TO].map(|rate| rate.parse::<Rate>().unwrap().per_second());
        for (_, set) in &run.levels {
            let is_within = (bounds[0]..=bounds[1]).contains(&rate(set));
            assert!(*set == Levels::default() || is_within, "{set:?}");
        }
        let range = found(&run).map(|found| [found.low, found.level, found.high].map(number));
        let [low, level, high] = range.unwrap_or_default().map(|rate| rate / kind.truth);
        let above = seconds_above(&run, kind.truth);
        println!(
            "{}, seed {seed}: found {level:.3} ({low:.3} to {high:.3}) after {:.0} s, too high for {above:.0} s",
            kind.name, run.seconds
        );
        within += f64::from(u8::from((level - 1.0).abs() <= 0.1));
        in_range += f64::from(u8::from((low..=high).contains(&1.0)));
        over += f64::from(u8::from(above > 10.0));
        took += run.seconds / count;
    }
    let name = kind.name;
    assert!(within >= 0.95 * count, "{name}: {within} within 10 %");
    assert!(in_range >= 0.75 * count, "{name}: {in_range} in range");
    // A failure that happens only in a pause every ten seconds may appear later than that.
    assert!(over <= 0.03 * count, "{name}: {over} too high for long");
    took
}

/// Defines a test for each kind of origin, so that they run at the same time.
macro_rules! find_tests {
    ($($name:ident = $kind:literal,)*) => {
        $(#[test]
        fn $name() {
            find_all(&KINDS[$kind]);
        })*
    };
}

find_tests! {
    the_end_of_servers_with_one_queue_is_found = 0,
    the_end_of_an_origin_with_a_lock_is_found = 1,
    the_end_of_an_origin_whose_cache_fills_is_found = 2,
    the_end_of_an_origin_that_pauses_is_found = 3,
    the_end_of_a_database_with_few_connections_is_found = 4,
    the_end_of_an_origin_that_sheds_is_found = 5,
}

#[test]
fn the_end_of_an_origin_that_is_slow_at_any_rate_is_found() {
    // The search takes nearly 50 steps of 5 %. The origin takes 200 of the allowed 300 ms at any
    // rate. If that counted as near the end, the steps would be smaller and longer: 70 minutes.
    assert!(find_all(&KINDS[6]) < 40.0 * 60.0);
}

/// Returns the largest share of bad responses relative to the allowed one, at a fixed rate.
///
/// The value is at most 1 if the rate keeps the objective. The first ten minutes do not count: a
/// cache fills, and its backlog drains.
fn share_of_allowed(kind: &Kind, rate: f64) -> f64 {
    const WARM_UP: f64 = 600.0;
    let objective: Objective = kind.objective.parse().unwrap();
    let mut random = Random::new(11);
    let mut origin = (kind.make)(&mut random);
    let mut bad = vec![0.0; objective.conditions().len()];
    let (mut counted, mut time) = (0.0, 0.0);
    while time < 2000.0 + WARM_UP {
        let answer = origin.answer(time, &mut random);
        if time > WARM_UP {
            counted += 1.0;
            for (bad, condition) in bad.iter_mut().zip(objective.conditions()) {
                let is_bad = answer.status >= 500
                    || matches!(condition, Criterion::Percentile { below, .. } if answer.took >= below.as_secs_f64());
                *bad += f64::from(u8::from(is_bad));
            }
        }
        time += 1.0 / rate;
    }
    let shares = bad.iter().zip(objective.conditions());
    shares
        .map(|(bad, condition)| bad / counted / condition.allowed())
        .fold(0.0, f64::max)
}

#[test]
fn the_known_capacities_are_those_of_long_runs() {
    let kinds: Vec<_> = KINDS.iter().collect();
    for kind in some_of(&kinds, 3) {
        let [below, above] = [0.97, 1.03].map(|part| share_of_allowed(kind, kind.truth * part));
        let name = kind.name;
        assert!(below <= 1.0 && above > 1.0, "{name}: {below} {above}");
    }
}

#[test]
fn fewer_requests_wait_at_the_gate_than_at_the_first_rate() {
    let kind = &KINDS[0];
    for seed in known_seeds(1, 0..4, 40).range() {
        let arrivals = || Arrivals::new(190.0, Random::new(seed + 100));
        let mut demand = Demand::Arrivals(arrivals());
        let run = run(kind, settings(kind), &mut demand, seed);
        let Demand::Arrivals(demand) = demand else {
            unreachable!()
        };
        // At the first rate, 100r/s, the queue grows by 90 per second.
        assert!(run.seconds > 300.0);
        // The same arrivals, if the rate stays the first one: a request leaves each 10 ms.
        let (mut fixed, mut time) = (arrivals(), 0.0);
        while time < run.seconds {
            fixed.take(time);
            time += 0.01;
        }
        let most = [demand.most_waiting, fixed.most_waiting];
        assert!(most[0] < most[1] / 2, "{most:?} waited");
    }
}

/// Searches for permits give the same capacity as searches for rates.
///
/// Four servers of 20 ms answer a request that finds 65 others in 400 ms at the 95th percentile: 62
/// services at 200 per second and its own, 330 ms on average with a deviation of 44 ms.
#[test]
fn permits_are_found_like_rates() {
    for seed in known_seeds(1, 0..5, 40).range() {
        let mut settings = settings(&KINDS[0]);
        settings.target = Target::Permits { from: 20, to: 200 };
        let run = run(&KINDS[0], settings, &mut Demand::Endless, seed);
        let level = found(&run).map_or(0.0, |found| number(found.level));
        assert!((60.0..=72.0).contains(&level), "{level}");
    }
}
