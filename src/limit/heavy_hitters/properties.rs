//! Properties of the heaviest keys: random streams against exact counts.
//!
//! A [`Measure`] is what is counted of each key. A [`Window`] is the span of time that counts.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::space_saving::COUNTERS;
use super::{HeavyHitters, Measure, Window};
use crate::Moment;

const START: Moment = Moment::from_nanos(1_700_000_000_123_456_789);
const MEASURES: [Measure; 3] = [Measure::Requests, Measure::Rejections, Measure::Waits];

/// Event of `key`, `pause` milliseconds after the previous one.
#[derive(Clone, Debug)]
struct Event {
    pause: u64,
    measure: Measure,
    key: u64,
    weight: u64,
}

/// Generates a few heavy keys among many light ones.
fn event() -> impl Strategy<Value = Event> {
    let key = prop_oneof![2 => 0..4_u64, 1 => 0..40_u64, 4 => 0..3_000_u64];
    let pause = prop_oneof![30 => 0..20_u64, 1 => 0..40_000_u64];
    (pause, 0..3_usize, key, 1..50_u64).prop_map(|(pause, measure, key, weight)| Event {
        pause,
        measure: MEASURES[measure],
        key,
        weight,
    })
}

fn hash(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the exact sums of the slots that a window covers at `now`.
fn exact(
    events: &[(Moment, Event)],
    measure: Measure,
    window: Window,
    now: Moment,
) -> HashMap<u64, u64> {
    let first = window.first(now);
    let mut sums = HashMap::new();
    for (at, event) in events {
        if event.measure == measure && window.number(*at) >= first {
            *sums.entry(event.key).or_default() += event.weight;
        }
    }
    sums
}

/// Records events, and compares all windows with the exact sums `later` ms after the last event.
fn check(events: Vec<Event>, later: u64) -> Result<(), TestCaseError> {
    let mut hitters = HeavyHitters::default();
    let mut now = START;
    let mut timed = Vec::new();
    for event in events {
        now = now + Duration::from_millis(event.pause);
        let key = event.key;
        hitters.record(event.measure, hash(key), || key, event.weight, now);
        timed.push((now, event));
    }
    now = now + Duration::from_millis(later);
    for window in [Window::Seconds, Window::Minute, Window::TenMinutes] {
        let counts = |it: &Measure| window != Window::Seconds || *it == Measure::Rejections;
        for measure in MEASURES.into_iter().filter(counts) {
            let exact = exact(&timed, measure, window, now);
            let total: u64 = exact.values().sum();
            let found = hitters.heaviest(measure, window, usize::MAX, now);
            prop_assert_eq!(found.total, total);
            prop_assert!(found.error <= total / COUNTERS as u64, "{found:?}");
            let keys: HashSet<u64> = found.keys.iter().map(|heavy| heavy.key).collect();
            prop_assert_eq!(keys.len(), found.keys.len(), "each key once");
            for (key, sum) in &exact {
                if *sum > total / COUNTERS as u64 {
                    prop_assert!(keys.contains(key), "{key} has {sum} of {total}");
                }
            }
            let mut before = u64::MAX;
            for heavy in &found.keys {
                let sum = exact.get(&heavy.key).copied().unwrap_or_default();
                let shown = heavy.of(measure);
                prop_assert!(shown >= sum, "{heavy:?} has {sum}");
                prop_assert!(shown - sum <= found.error, "{heavy:?} has {sum}: {found:?}");
                prop_assert!(shown <= before, "the heaviest comes first");
                before = shown;
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(testing::cases(8, 2048))]

    #[test]
    fn heavy_keys_are_found_and_no_count_is_off_by_more_than_the_error(
        events in vec(event(), 0..3_000),
        later in prop_oneof![Just(0), 0..900_000_u64],
    ) {
        check(events, later)?;
    }
}

#[test]
fn with_few_keys_all_counts_are_exact() {
    let mut hitters = HeavyHitters::default();
    let mut now = START;
    for nth in 0..6_000_u64 {
        now = now + Duration::from_millis(10);
        let key = nth % COUNTERS as u64;
        hitters.record(Measure::Requests, hash(key), || key, 1, now);
        if key == 3 {
            hitters.record(Measure::Rejections, hash(key), || key, 1, now);
        }
    }
    let found = hitters.heaviest(Measure::Requests, Window::TenMinutes, usize::MAX, now);
    assert_eq!((found.total, found.error), (6_000, 0));
    assert!(found.keys.iter().all(|heavy| heavy.requests >= 6_000 / 64));
    let rejected = hitters.heaviest(Measure::Rejections, Window::Minute, 3, now);
    assert_eq!(rejected.keys.len(), 1);
    assert_eq!((rejected.keys[0].key, rejected.keys[0].rejections), (3, 94));
    assert_eq!(rejected.keys[0].wait, Duration::ZERO);
}

#[test]
fn a_key_that_is_no_longer_rejected_is_soon_forgotten_in_the_shortest_window() {
    let mut hitters = HeavyHitters::default();
    // Rejects a request of `key` after `seconds`. Returns the keys in the two shorter windows.
    let mut reject = |key, seconds| {
        let now = START + Duration::from_secs(seconds);
        hitters.record(Measure::Rejections, hash(key), || key, 1, now);
        let heaviest = |window| {
            let found = hitters.heaviest(Measure::Rejections, window, 9, now);
            let mut keys: Vec<_> = found.keys.iter().map(|it| it.key).collect();
            keys.sort_unstable();
            keys
        };
        (heaviest(Window::Seconds), heaviest(Window::Minute))
    };
    assert_eq!(reject(1, 0), (vec![1], vec![1]));
    assert_eq!(reject(2, 3), (vec![1, 2], vec![1, 2]));
    assert_eq!(reject(2, 4), (vec![2], vec![1, 2]));
}

#[test]
fn a_flood_of_new_keys_takes_bounded_memory_and_hides_no_heavy_key() {
    let mut hitters = HeavyHitters::default();
    let mut now = START;
    hitters.record(Measure::Rejections, hash(7), || 7, 1, now);
    for nth in 0..120_000_u64 {
        now = now + Duration::from_millis(1);
        let key = if nth % 20 == 0 { 7 } else { 1_000 + nth };
        hitters.record(Measure::Requests, hash(key), || key, 1, now);
    }
    for ring in &hitters.rings[1..] {
        let (closed, open) = ring.slots.as_slices();
        let slots: Vec<_> = closed.iter().chain(open).collect();
        assert!(slots.len() <= ring.window.slots().1);
        // A closed slot keeps only counters with information.
        for slot in &slots[..slots.len() - 1] {
            let kept = slot.summaries[Measure::Requests as usize].iter().count();
            assert!(kept < COUNTERS, "{kept}");
        }
    }
    let found = hitters.heaviest(Measure::Requests, Window::Minute, 1, now);
    assert_eq!(found.keys[0].key, 7);
    hitters.forget_old(now + Duration::from_secs(720));
    let mut rings = hitters.rings.iter();
    assert!(rings.all(|ring| ring.slots.is_empty()));
}

#[test]
fn of_equal_keys_the_first_are_found_regardless_of_hashes() {
    for hashes in [[1, 2, 3], [3, 2, 1], [2, 3, 1]] {
        let mut hitters = HeavyHitters::default();
        for (key, hash) in ["a", "b", "c"].into_iter().zip(hashes) {
            hitters.record(Measure::Rejections, hash, || key, 2, START);
        }
        let heaviest = hitters.heaviest(Measure::Rejections, Window::Minute, 2, START);
        let keys: Vec<_> = heaviest.keys.into_iter().map(|heavy| heavy.key).collect();
        assert_eq!(keys, ["a", "b"]);
    }
}
