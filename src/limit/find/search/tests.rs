//! Tests of the search for the highest good level, between 50r/s and 400r/s.
//!
//! A *trial* is a level, the purpose for which it is tried, and whether it was good. A level that
//! is not good is a *breach*. *Closeness* says how close a good level is to the edge, which is 1.

#![expect(clippy::float_cmp, reason = "levels are set, not computed with")]

use super::*;
use crate::find::Target;
use crate::fixtures::rate;

type Trial = (f64, Purpose, bool);

/// Returns a search that raises the level by `step`.
fn begin(step: f64) -> Search {
    let (from, to) = (rate("50r/s"), rate("400r/s"));
    Search::new(Target::Rate { from, to }, step)
}

/// Runs the search to its end. Returns how it ended, and all trials.
///
/// `judge` returns whether a level is good for a purpose, and its closeness.
fn run(
    search: &mut Search,
    mut judge: impl FnMut(f64, Purpose) -> (bool, f64),
) -> (Next, Vec<Trial>) {
    let mut trials = Vec::new();
    for _ in 0..2000 {
        let (level, purpose) = (search.level, search.purpose);
        let (is_good, closeness) = judge(level, purpose);
        trials.push((level, purpose, is_good));
        let verdict = [StepVerdict::Broke, StepVerdict::Good][usize::from(is_good)];
        match search.next(verdict, closeness) {
            Next::Try(..) => {}
            end => return (end, trials),
        }
    }
    panic!("no end: {:?}", &trials[1990..]);
}

/// Checks invariants that hold for any verdicts.
fn check(trials: &[Trial], step: f64) {
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
        for edge in (50..400).map(f64::from) {
            let mut search = begin(step);
            let (end, trials) = run(&mut search, |level, _| (level <= edge, 0.0));
            check(&trials, step);
            assert_eq!(end, Next::Found);
            let is_near = search.level <= edge && search.level * (1.0 + step) + 1.5 > edge;
            assert!(is_near, "{edge} {step}");
            let (low, high) = search.range();
            assert!(low <= edge && edge <= high, "{low} {edge} {high}");
            let highest = trials.iter().map(|trial| trial.0).fold(0.0, f64::max);
            let is_careful = highest <= edge * (1.0 + step) + 1.0;
            assert!(is_careful, "{highest} {edge} {step}");
        }
    }
}

#[test]
fn a_breach_is_taken_back_below_the_last_good_level_at_once() {
    let mut search = begin(0.05);
    let (_, trials) = run(&mut search, |level, _| (level < 207.0, 0.0));
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
    let mut search = begin(0.05);
    // 195 and 200 hold on the way up, and higher levels break; then only 190 is confirmed.
    let (end, trials) = run(&mut search, |level, purpose| match purpose {
        Purpose::Confirm => (level < 192.0, 0.0),
        _ => (level < 202.0, 0.0),
    });
    assert_eq!(end, Next::Found);
    let held = trials
        .iter()
        .filter(|(_, why, is_good)| *is_good && *why != Purpose::Recover);
    let highest = held.map(|trial| trial.0).fold(0.0, f64::max);
    let (low, high) = search.range();
    let level = search.level;
    assert!(level < 192.0 && highest > 193.0, "{level} {highest}");
    assert!(
        low < level && high >= highest * 1.04,
        "{low} {highest} {high}"
    );
}

#[test]
fn steps_are_smaller_near_the_edge() {
    let mut search = begin(0.05);
    let (_, trials) = run(&mut search, |level, _| (level <= 300.0, level / 300.0));
    for pair in trials.windows(2).filter(|pair| pair[1].1 == Purpose::Climb) {
        let (from, up) = (pair[0].0, pair[1].0 / pair[0].0 - 1.0);
        let most = match from {
            ..=150.0 => 0.05,
            ..=210.0 => 0.025,
            _ => 0.0125,
        };
        assert!(up <= most + 0.5 / from + 0.002, "{from} {up}");
    }
}

#[test]
fn it_ends_at_the_ends_of_its_bounds_and_where_no_level_holds() {
    type IsGood = fn(f64, Purpose) -> bool;
    let mut search = begin(0.05);
    let (end, trials) = run(&mut search, |_, _| (true, 0.0));
    assert!(end == Next::Found && search.level == 400.0 && search.is_at_top());
    assert_eq!(trials.last(), Some(&(400.0, Purpose::Confirm, true)));
    let cases: [(IsGood, AbortReason); 3] = [
        (|_, _| false, AbortReason::BrokenAtFirst),
        (
            |level, why| level < 60.0 && why == Purpose::Climb,
            AbortReason::NotRecovered,
        ),
        (
            |level, why| level < 200.0 && why != Purpose::Confirm,
            AbortReason::Unsteady,
        ),
    ];
    for (is_good, reason) in cases {
        let (end, trials) = run(&mut begin(0.05), |level, why| (is_good(level, why), 0.0));
        assert_eq!(end, Next::Abort(reason));
        assert_eq!(trials.len() == 1, reason == AbortReason::BrokenAtFirst);
    }
}

#[test]
fn whatever_the_verdicts_are_it_ends_and_stays_within_its_bounds() {
    let mut random = testing::Random(1);
    for _ in 0..2000 {
        let good = 0.5 + 0.5 * random.share();
        let (_, trials) = run(&mut begin(0.05), |_, _| {
            let closeness = match random.share() {
                ..0.33 => 0.0,
                ..0.67 => 0.6,
                _ => 0.9,
            };
            (random.share() < good, closeness)
        });
        check(&trials, 0.05);
    }
}
