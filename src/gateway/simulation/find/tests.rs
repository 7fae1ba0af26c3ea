use limit::find::{
    AbortReason, Experiment, FindSettings, Found, Level, Levels, Observed, Outcome, Target, Timing,
};
use limit::{Moment, Rate};
use testing::{known_seeds, some_of, variable};

use super::demand::{Arrivals, Demand};
use super::origins::{KINDS, Kind};
use super::run::{self, Run};
use super::truth;
use crate::simulation::random::Random;

fn settings(kind: &Kind) -> FindSettings {
    FindSettings {
        target: Target::Rate {
            from: kind.from.parse().unwrap(),
            to: kind.to.parse().unwrap(),
        },
        objective: kind.objective.parse().unwrap(),
        step: "5%".parse().unwrap(),
        timing: Timing::default(),
    }
}

fn run(kind: &Kind, settings: FindSettings, demand: &mut Demand, seed: u64) -> Run {
    run_and(kind, settings, demand, seed, |_, _| {})
}

fn run_and(
    kind: &Kind,
    settings: FindSettings,
    demand: &mut Demand,
    seed: u64,
    change: impl FnMut(&mut Observed, f64),
) -> Run {
    let mut random = Random::new(seed);
    let mut origin = (kind.make)(&mut random);
    let it = Experiment::new(settings, Observed::default(), Moment::default());
    run::run(it, &mut *origin, demand, &mut random, change)
}

fn number(level: Level) -> f64 {
    match level {
        Level::Rate(rate) => rate.per_second(),
        Level::Places(places) => f64::from(places),
    }
}

fn rate(levels: &Levels) -> f64 {
    levels.rate.map_or(0.0, Rate::per_second)
}

fn found(run: &Run) -> Option<Found> {
    match run.report.outcome {
        Some(Outcome::Found(found)) => Some(found),
        _ => None,
    }
}

/// The longest time on end that a run was more than a step above the truth.
fn above(run: &Run, truth: f64) -> f64 {
    let ends = run.levels.iter().skip(1).map(|(at, _)| *at);
    let (mut since, mut longest) = (None, 0.0_f64);
    for ((at, levels), end) in run.levels.iter().zip(ends.chain([run.seconds])) {
        if rate(levels) > truth * 1.0501 {
            longest = longest.max(end - *since.get_or_insert(*at));
        } else {
            since = None;
        }
    }
    longest
}

fn print(run: &Run) {
    for step in &run.report.steps {
        println!("{step:?}");
    }
    println!("{:?}", run.report.outcome);
}

/// Runs the experiments with one origin, and checks and prints what they found. Returns the mean of the
/// seconds that they took.
fn find_all(kind: &Kind) -> f64 {
    // The bounds are on the share of experiments, and few of them miss one now and then: with seed 1 the
    // end of the origin that pauses lies outside the printed range.
    let seeds = known_seeds(1, 2..5, 350);
    if seeds.is_single() {
        let run = run(
            kind,
            settings(kind),
            &mut Demand::Endless,
            seeds.range().start,
        );
        print(&run);
        return run.seconds;
    }
    let count = seeds.count();
    let (mut ratios, mut in_range, mut over, mut took, mut broke) = (vec![], 0, vec![], 0.0, 0.0);
    for seed in seeds.range() {
        let run = run(kind, settings(kind), &mut Demand::Endless, seed);
        let (from, to) = (
            kind.from.parse::<Rate>().unwrap(),
            kind.to.parse::<Rate>().unwrap(),
        );
        let bounds = from.per_second()..=to.per_second();
        let set = run
            .levels
            .iter()
            .filter(|(_, levels)| *levels != Levels::default());
        assert!(
            set.into_iter()
                .all(|(_, levels)| bounds.contains(&rate(levels)))
        );
        let found = found(&run);
        let level = found.map_or(0.0, |found| number(found.level));
        ratios.push(level / kind.truth);
        let range = found.map_or(0.0..=0.0, |it| number(it.low)..=number(it.high));
        in_range += u32::from(range.contains(&kind.truth));
        let above = above(&run, kind.truth);
        if !range.contains(&kind.truth) || above > 10.0 {
            let (low, high) = (range.start() / kind.truth, range.end() / kind.truth);
            println!(
                "{}, seed {seed}: found {:.3} ({low:.3} to {high:.3}), too high for {above:.0} s",
                kind.name,
                level / kind.truth
            );
        }
        took += run.seconds / count as f64;
        let steps = run
            .report
            .steps
            .iter()
            .filter(|step| step.back_to.is_some());
        broke += steps.map(|step| step.took.as_secs_f64()).sum::<f64>() / count as f64;
        if above > 10.0 {
            over.push(seed);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let within = ratios.iter().filter(|it| (**it - 1.0).abs() <= 0.1).count();
    println!(
        "{}: {within} of {count} within 10 %, {:.3} to {:.3}, median {:.3}; in range {in_range}; \
         above {over:?}; {took:.0} s, {broke:.0} s in steps that broke",
        kind.name,
        ratios[0],
        ratios[ratios.len() - 1],
        ratios[ratios.len() / 2],
    );
    assert!(
        within as f64 >= 0.95 * count as f64,
        "{}: {ratios:?}",
        kind.name
    );
    assert!(
        f64::from(in_range) >= 0.75 * count as f64,
        "{}: {in_range}",
        kind.name
    );
    // What breaks only in a pause each ten seconds may show itself later than that.
    assert!(
        over.len() as f64 <= 0.03 * count as f64,
        "{}: above {over:?}",
        kind.name
    );
    took
}

#[test]
fn the_end_of_servers_with_one_queue_is_found() {
    find_all(&KINDS[0]);
}

#[test]
fn the_end_of_an_origin_with_a_lock_is_found() {
    find_all(&KINDS[1]);
}

#[test]
fn the_end_of_an_origin_whose_cache_fills_is_found() {
    find_all(&KINDS[2]);
}

#[test]
fn the_end_of_an_origin_that_pauses_is_found() {
    find_all(&KINDS[3]);
}

#[test]
fn the_end_of_a_database_with_few_connections_is_found() {
    find_all(&KINDS[4]);
}

#[test]
fn the_end_of_an_origin_that_sheds_is_found() {
    find_all(&KINDS[5]);
}

#[test]
fn the_end_of_an_origin_that_is_slow_at_any_rate_is_found() {
    // Nearly 50 steps of 5 % lead there. Were its 200 ms of 300 near the end, each were a quarter and
    // twice as long: 70 minutes.
    assert!(find_all(&KINDS[6]) < 40.0 * 60.0);
}

#[test]
fn truths_are_those_of_long_runs() {
    let all: Vec<_> = KINDS.iter().collect();
    for kind in some_of(&all, 3) {
        let below = truth::closeness(kind, kind.truth * 0.97, 2000.0, 11);
        let above = truth::closeness(kind, kind.truth * 1.03, 2000.0, 11);
        println!(
            "{}: {below:.2} of what is allowed below it, {above:.2} above",
            kind.name
        );
        assert!(
            below <= 1.0 && above > 1.0,
            "{}: {below} {above}",
            kind.name
        );
    }
}

/// `DRIP_TRUTHS=10000 cargo test --lib measures_the_truths`, with the seconds of a run.
#[test]
fn measures_the_truths() {
    let Some(seconds) = variable("DRIP_TRUTHS") else {
        return;
    };
    for kind in &KINDS {
        println!(
            "{}: {:.1}",
            kind.name,
            truth::measure(kind, seconds as f64, 5)
        );
    }
}

#[test]
fn no_more_wait_at_the_gate_than_at_the_first_rate() {
    let kind = &KINDS[0];
    for seed in known_seeds(1, 0..4, 40).range() {
        let arrivals = || Arrivals::new(&[(0.0, 190.0)], Random::new(seed + 100));
        let mut demand = Demand::Arrivals(arrivals());
        let run = run(kind, settings(kind), &mut demand, seed);
        let Demand::Arrivals(demand) = demand else {
            unreachable!()
        };
        // At the first rate, 100r/s, the queue grows by 90 a second.
        assert!(run.seconds > 300.0);
        let mut fixed = Demand::Arrivals(arrivals());
        let mut at = 0.0;
        while at < run.seconds {
            fixed.take(at);
            at += 0.01;
        }
        let Demand::Arrivals(fixed) = fixed else {
            unreachable!()
        };
        println!(
            "{} waited, {} at the first rate",
            demand.most_waiting, fixed.most_waiting
        );
        assert!(demand.most_waiting < fixed.most_waiting / 2);
    }
}

#[test]
fn a_demand_below_the_end_says_at_least_what_was_asked_for() {
    let kind = &KINDS[0];
    for seed in known_seeds(1, 0..4, 40).range() {
        let arrivals = Arrivals::new(&[(0.0, 150.0)], Random::new(seed));
        let run = run(kind, settings(kind), &mut Demand::Arrivals(arrivals), seed);
        let Some(Outcome::AtLeast(level)) = run.report.outcome else {
            panic!("{:?}", run.report.outcome);
        };
        // Each step up lets the queue of the steps before drain.
        assert!((130.0..=200.0).contains(&number(level)), "{level}");
    }
}

#[test]
fn a_server_that_goes_ends_it() {
    let kind = &KINDS[0];
    let run = run_and(
        kind,
        settings(kind),
        &mut Demand::Endless,
        1,
        |seen, now| {
            seen.servers = u64::from(now > 100.0);
        },
    );
    let Some(Outcome::Aborted(AbortReason::ServersChanged, Some(_))) = run.report.outcome else {
        panic!("{:?}", run.report.outcome);
    };
    assert!(run.seconds < 100.3);
    assert_eq!(
        run.levels.last().map(|(_, levels)| *levels),
        Some(Levels::default())
    );
}

/// Four servers of 20 ms answer a request that finds 65 others in 400 ms at the 95th percentile: 62
/// services at 200 a second and its own, 330 ms on average with a deviation of 44 ms.
#[test]
fn places_are_found_as_rates_are() {
    for seed in known_seeds(1, 0..5, 40).range() {
        let mut settings = settings(&KINDS[0]);
        settings.target = Target::Places { from: 20, to: 200 };
        let run = run(&KINDS[0], settings, &mut Demand::Endless, seed);
        let level = found(&run).map(|it| number(it.level));
        assert!(
            level.is_some_and(|it| (60.0..=72.0).contains(&it)),
            "{level:?}"
        );
    }
}
