//! Tests of the search.

#![expect(clippy::float_cmp, reason = "levels are set, not computed with")]

use super::*;
use crate::find::Target;

fn search(from: &str, to: &str, step: f64) -> Search {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    Search::new(Target::Rate { from, to }, step)
}

/// Runs the search to its end. Returns all trials, with their verdicts.
fn run(
    search: &mut Search,
    mut judge: impl FnMut(f64, Purpose) -> (bool, f64),
) -> (Next, Vec<(f64, Purpose, bool)>) {
    let mut trials = Vec::new();
    for _ in 0..2000 {
        let (level, purpose) = (search.level, search.purpose);
        let (is_good, closeness) = judge(level, purpose);
        trials.push((level, purpose, is_good));
        let verdict = if is_good {
            StepVerdict::Good
        } else {
            StepVerdict::Broke
        };
        match search.next(verdict, closeness) {
            Next::Try(..) => {}
            end => return (end, trials),
        }
    }
    panic!("no end: {:?}", &trials[1990..]);
}

/// Checks invariants that hold for any verdicts.
fn check(trials: &[(f64, Purpose, bool)], step: f64) {
    let mut good = None;
    for pair in trials.windows(2) {
        let ((level, purpose, is_good), (next, why, _)) = (pair[0], pair[1]);
        assert!((50.0..=400.0).contains(&next), "{next}");
        if is_good && purpose != Purpose::Recover {
            good = Some(f64::max(level, good.unwrap_or(0.0)));
        }
        let highest = good.map_or(50.0, |good: f64| good * (1.0 + step) + 1.0);
        assert!(next <= highest, "{next} after {good:?}");
        if !is_good {
            assert!(why == Purpose::Recover, "{why:?} after a breach");
            let is_below = next == 50.0 || next * (1.0 + step * 0.8) < level;
            assert!(is_below, "{next} after {level}");
            good = good.map(|good| good.min(level));
        }
    }
}

#[test]
fn a_sharp_edge_is_found_within_a_step_and_never_passed_by_more_than_one() {
    for step in [0.01, 0.02, 0.05, 0.1, 0.3] {
        for truth in 50..400 {
            let truth = f64::from(truth);
            let mut it = search("50r/s", "400r/s", step);
            let (end, trials) = run(&mut it, |level, _| (level <= truth, 0.0));
            check(&trials, step);
            assert_eq!(end, Next::Found);
            let is_near = it.level <= truth && it.level * (1.0 + step) + 1.5 > truth;
            assert!(is_near, "{truth} {step}");
            let (low, high) = it.range();
            assert!(low <= truth && truth <= high, "{low} {truth} {high}");
            let highest = trials.iter().map(|it| it.0).fold(0.0, f64::max);
            let is_careful = highest <= truth * (1.0 + step) + 1.0;
            assert!(is_careful, "{highest} {truth} {step}");
        }
    }
}

#[test]
fn a_breach_is_taken_back_below_the_last_good_level_at_once() {
    let mut it = search("50r/s", "400r/s", 0.05);
    let (_, trials) = run(&mut it, |level, _| (level < 207.0, 0.0));
    assert_eq!(
        trials[trials.len() - 4..],
        [
            (205.0, Purpose::Climb, true),
            (215.0, Purpose::Climb, false),
            (195.0, Purpose::Recover, true),
            (205.0, Purpose::Confirm, true),
        ]
    );
}

#[test]
fn the_range_counts_from_the_highest_level_that_ever_held() {
    let mut it = search("50r/s", "400r/s", 0.05);
    // 195 and 200 hold on the way up, and higher levels break; then only 190 is confirmed.
    let (end, trials) = run(&mut it, |level, purpose| match purpose {
        Purpose::Confirm => (level < 192.0, 0.0),
        _ => (level < 202.0, 0.0),
    });
    assert_eq!(end, Next::Found);
    let held = trials.iter().filter(|it| it.2 && it.1 != Purpose::Recover);
    let highest = held.map(|it| it.0).fold(0.0, f64::max);
    let (low, high) = it.range();
    let level = it.level;
    assert!(level < 192.0 && highest > 193.0, "{level} {highest}");
    let is_within = low < it.level && high >= highest * 1.04;
    assert!(is_within, "{low} {highest} {high}");
}

#[test]
fn steps_are_smaller_near_the_edge() {
    let mut it = search("50r/s", "400r/s", 0.05);
    let (_, trials) = run(&mut it, |level, _| (level <= 300.0, level / 300.0));
    for pair in trials.windows(2).filter(|pair| pair[1].1 == Purpose::Climb) {
        let (from, up) = (pair[0].0, pair[1].0 / pair[0].0 - 1.0);
        let most = if from > 210.0 {
            0.0125
        } else if from > 150.0 {
            0.025
        } else {
            0.05
        };
        assert!(up <= most + 0.5 / from + 0.002, "{from} {up}");
    }
}

#[test]
fn the_ends_of_the_bounds_end_it() {
    let mut it = search("50r/s", "400r/s", 0.05);
    let (end, trials) = run(&mut it, |_, _| (true, 0.0));
    assert!(end == Next::Found && it.level == 400.0 && it.is_at_top());
    assert_eq!(trials.last(), Some(&(400.0, Purpose::Confirm, true)));
    let mut it = search("50r/s", "400r/s", 0.05);
    let (end, trials) = run(&mut it, |_, _| (false, 0.0));
    assert_eq!(
        (end, trials.len()),
        (Next::Abort(AbortReason::BrokenAtFirst), 1)
    );
    let mut it = search("50r/s", "400r/s", 0.05);
    let (end, _) = run(&mut it, |level, why| {
        (level < 60.0 && why == Purpose::Climb, 0.0)
    });
    assert_eq!(end, Next::Abort(AbortReason::NotRecovered));
    let mut it = search("50r/s", "400r/s", 0.05);
    let (end, _) = run(&mut it, |level, why| {
        (level < 200.0 && why != Purpose::Confirm, 0.0)
    });
    assert_eq!(end, Next::Abort(AbortReason::Unsteady));
}

#[test]
fn whatever_the_verdicts_are_it_ends_and_stays_within_its_bounds() {
    let mut mixed = 1_u64;
    for seed in 0..2000 {
        let mut random = |of: u64| {
            mixed = mixed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(seed * 2 + 1);
            (mixed >> 33) % of
        };
        let percent = 50 + random(50);
        let mut it = search("50r/s", "400r/s", 0.05);
        let (_, trials) = run(&mut it, |_, _| {
            let near = [0.0, 0.6, 0.9][usize::try_from(random(3)).unwrap()];
            (random(100) < percent, near)
        });
        check(&trials, 0.05);
    }
}
