//! Properties of the learned durations, against a plain model that keeps all durations.
//!
//! A duration is *quiet* if fewer than half of the permits were in use, and *busy* otherwise.

use proptest::prelude::*;
use testing::config;

use super::*;

/// Returns the quantile of the last 32 of these durations, by the nearest rank.
fn quantile(all: &[u32], percent: usize) -> Option<u32> {
    let mut last = all[all.len().saturating_sub(32)..].to_vec();
    last.sort_unstable();
    let rank = (1..=last.len()).find(|rank| rank * 100 >= percent * last.len())?;
    last.get(rank - 1).copied()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn it_learns_as_a_model_that_keeps_everything(
        times in prop::collection::vec((1..5_000_000_u32, prop::bool::weighted(0.02)), 1..900),
    ) {
        let mut work = Work::default();
        let (mut quiet, mut busy) = (Vec::new(), Vec::new());
        // Busy durations since the last quiet one.
        let mut busy_in_row = 0;
        // The learned duration, and whether it was learned from quiet ones.
        let mut known: Option<(u32, bool)> = None;
        for (micros, is_quiet) in times {
            if is_quiet {
                if busy_in_row >= 256 {
                    quiet.clear();
                }
                quiet.push(micros);
                busy_in_row = 0;
            } else {
                busy.push(micros);
                busy_in_row += 1;
            }
            let now = if quiet.len() >= 4 && busy_in_row < 256 {
                quantile(&quiet, 25).map(|it| (it, true))
            } else if busy.len() >= 8 {
                quantile(&busy, 10).map(|it| (it, false))
            } else {
                known
            };
            let differs = match (known, now) {
                (Some((old, was_quiet)), Some((new, is_quiet))) => {
                    was_quiet != is_quiet || old.abs_diff(new) > (old / 10).max(1)
                }
                (old, new) => old != new,
            };
            if differs {
                known = now;
            }
            let took = Duration::from_micros(micros.into());
            prop_assert_eq!(work.learn(took, is_quiet), differs);
            let learned = work.learned().map(|it| (it.micros, it.is_quiet));
            prop_assert_eq!(learned, known);
        }
    }

    /// At a busy origin, quiet durations of one length teach that length.
    #[test]
    fn noise_that_only_adds_time_changes_nothing(
        work_micros in 1_000..2_000_000_u32,
        added in prop::collection::vec((any::<bool>(), prop::bool::weighted(0.4), 0..60_000_000_u32), 40..200),
    ) {
        let mut work = Work::default();
        let mut seen = 0;
        for (is_quiet, is_noisy, noise) in added {
            // Of four quiet durations, at most two are noisy: more than a quarter are not.
            let noise = if is_quiet && (seen % 4 < 2 || !is_noisy) { 0 } else { noise };
            seen += usize::from(is_quiet);
            let took = Duration::from_micros(u64::from(work_micros) + u64::from(noise));
            work.learn(took, is_quiet);
            if let Some(learned) = work.learned().filter(|it| it.is_quiet) {
                prop_assert_eq!(learned.micros, work_micros);
            }
        }
    }

    /// A restart between any two requests does not change the learned value.
    #[test]
    fn what_is_restored_learns_on_as_if_nothing_had_happened(
        times in prop::collection::vec((1..5_000_000_u32, prop::bool::weighted(0.05)), 1..600),
        restarts in prop::collection::vec(0..600_usize, 0..4),
    ) {
        let (mut work, mut same) = (Work::default(), Work::default());
        for (nth, (micros, is_quiet)) in times.into_iter().enumerate() {
            if restarts.contains(&nth) {
                work = Work::restore(&work.save());
            }
            let took = Duration::from_micros(micros.into());
            prop_assert_eq!(work.learn(took, is_quiet), same.learn(took, is_quiet));
            prop_assert_eq!(work.learned(), same.learned());
        }
        prop_assert_eq!(work.save(), same.save());
    }

    /// A cost is the nearest number of units, at least 1 and at most `max`.
    #[test]
    fn a_cost_is_the_nearest(
        micros in prop_oneof![0..10_000_000_u64, any::<u64>()],
        unit in prop_oneof![1..10_u64, 100..1_000_000_u64],
        max in 1..=255_u32,
    ) {
        let most = Cost::new(max).expect("a cost");
        let [took, of_one] = [micros, unit].map(Duration::from_micros);
        let nearest = (micros / unit) + u64::from(micros % unit * 2 >= unit);
        let cost = Cost::of_work(took, of_one, most);
        prop_assert_eq!(u64::from(cost.get()), nearest.clamp(1, max.into()));
    }
}
