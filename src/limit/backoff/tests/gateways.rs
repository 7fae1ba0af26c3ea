//! Tests of gateways that share an origin: a cut at one gateway applies at all of them.

mod fleet;
mod histories;
mod late;

use super::*;
use fleet::{Fleet, Gateway};

/// Lets one gateway receive trouble until it is cut. Returns its share after the cut.
fn cut_one(fleet: &mut Fleet) -> f64 {
    fleet.gateways[0].trouble = 100;
    while fleet.gateways[0].share() > 0.99 {
        fleet.run(1);
        assert!(fleet.millis < 20_000, "it is never cut");
    }
    fleet.gateways[0].trouble = 0;
    fleet.gateways[0].share()
}

#[test]
fn a_cut_at_one_gateway_is_one_at_all_within_a_second() {
    let mut fleet = Fleet::of(3);
    fleet.run(3000);
    let left = cut_one(&mut fleet);
    fleet.run(300);
    assert_eq!(fleet.shares(), [left; 3]);
    let counts = fleet.gateways.iter().map(|it| (it.cuts, it.adopted));
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts, [(1, 0), (0, 1), (0, 1)]);
    let elsewhere = |gateway: &Gateway| gateway.backoff.lowered().rate.unwrap().1.is_elsewhere;
    let elsewhere: Vec<_> = fleet.gateways.iter().map(elsewhere).collect();
    assert_eq!(elsewhere, [false, true, true]);
}

/// Ten gateways grow as fast as one, neither faster nor more slowly.
#[test]
fn all_grow_as_one_alone() {
    let back = |count: u64| {
        let mut fleet = Fleet::of(count);
        // Without any good answer no point of trouble is known, so growth is not slowed near it.
        fleet.gateways[0].trouble = 100;
        while fleet.gateways[0].share() > 0.1 {
            fleet.run(1);
        }
        fleet.gateways[0].trouble = 0;
        let began = fleet.millis;
        let mut half = 0;
        while fleet.shares().iter().any(|share| *share < 1.0) {
            fleet.run(50);
            let shares = fleet.shares();
            let most = shares.iter().copied().fold(0.0, f64::max);
            let least = shares.iter().copied().fold(1.0, f64::min);
            let is_alike = most - least < 0.03 || fleet.millis < began + 400;
            assert!(is_alike, "{shares:?}");
            if half == 0 && least >= 0.75 {
                half = fleet.millis - began;
            }
            assert!(fleet.millis < began + 120_000, "nobody stays cut for ever");
        }
        (half, fleet.millis - began)
    };
    let (alone, ten) = (back(1), back(10));
    println!("one: {alone:?} ms, ten: {ten:?} ms");
    for (ten, alone) in [(ten.0, alone.0), (ten.1, alone.1)] {
        let is_alike = ten + 1000 >= alone && ten <= alone + 2000;
        assert!(is_alike, "{alone} {ten}");
    }
}

/// All gateways see the same trouble, until all know of the cut.
#[test]
fn trouble_that_all_see_cuts_once() {
    let mut fleet = Fleet::of(5);
    for gateway in &mut fleet.gateways {
        (gateway.every, gateway.takes) = (0, 150);
    }
    // Windows begin at different instants at each gateway.
    for nth in 0..5 {
        fleet.gateways[nth].every = 20;
        fleet.run(290);
    }
    fleet.run(2000);
    for gateway in &mut fleet.gateways {
        gateway.trouble = 100;
    }
    while fleet.shares().iter().any(|share| *share > 0.99) {
        fleet.run(1);
    }
    let left = fleet.shares().into_iter().fold(1.0, f64::min);
    assert_eq!(fleet.shares(), [left; 5]);
    // Requests in flight are still answered with trouble. Later requests are not.
    fleet.run(150);
    for gateway in &mut fleet.gateways {
        gateway.trouble = 0;
    }
    fleet.run(4000);
    assert_eq!(fleet.shares(), [left; 5]);
}

#[test]
fn a_cut_of_places_is_one_at_all_and_grows_at_all() {
    let mut fleet = Fleet::with(3, slow(100));
    fleet.run(3000);
    cut_places_by_one(&mut fleet);
    let places = fleet.places();
    assert_eq!(places, [places[0]; 3]);
    assert!(places[0] <= 32, "{places:?}");
    fleet.run(60_000);
    assert_eq!(fleet.places(), [40; 3]);
}

/// If one gateway has nearly too much trouble to grow, no gateway grows.
#[test]
fn the_lowest_counts() {
    let mut fleet = Fleet::of(2);
    fleet.run(3000);
    cut_one(&mut fleet);
    fleet.gateways[1].every = 5;
    fleet.run(7000);
    // Trouble is between half of `trip` and `trip`, once: the rate does not grow, and is not cut.
    let before = fleet.shares();
    fleet.gateways[1].trouble = 100;
    fleet.run(2500);
    let after = fleet.shares();
    let is_lower = after[0] < before[0] && after[1] < before[1];
    assert!(is_lower, "{before:?} {after:?}");
}

/// A gateway sends its state again at once if the store refused it, because another one was first.
#[test]
fn what_was_refused_is_told_again_at_once() {
    let mut fleet = Fleet::of(1);
    fleet.run(3000);
    let left = cut_one(&mut fleet);
    fleet.run(300);
    let other = Gateway::start(99 << 32, limits(), fleet.millis).backoff;
    let nothing = other.learned(at(fleet.millis));
    fleet.store.stored = Some(([1; 12], nothing, fleet.millis));
    let tells = |fleet: &Fleet| {
        let asked = fleet.gateways[0].asked.as_ref();
        asked.is_some_and(|(ask, _)| ask.tell.is_some())
    };
    while !tells(&fleet) {
        fleet.run(1);
        assert!(fleet.millis < 20_000, "it never tells");
    }
    fleet.store.stored = Some(([2; 12], nothing, fleet.millis));
    fleet.run(30);
    let (_, stored, _) = fleet.store.stored.unwrap();
    let share = f64::from(stored.rate.share.millionths()) / 1e6;
    assert!((share - left).abs() < 0.001, "{share}");
}

/// Makes the answers of one gateway slow, until its limit is cut from the configured 40.
fn cut_places_by_one(fleet: &mut Fleet) {
    fleet.gateways[0].takes = 150;
    while fleet.places()[0] == 40 {
        fleet.run(1);
        assert!(fleet.millis < 20_000, "they are never cut");
    }
    fleet.gateways[0].takes = 10;
    fleet.run(300);
}

#[test]
fn one_part_of_the_answers_stands_for_all() {
    let mut fleet = Fleet::of(4);
    // 50 good answers a second at each gateway, 200 in all. Then 30 % of them are trouble.
    fleet.run(6000);
    for gateway in &mut fleet.gateways {
        gateway.trouble = 30;
    }
    while fleet.shares().iter().all(|share| *share > 0.99) {
        fleet.run(1);
    }
    // 0.95 of 140 good answers, of 200. Without the correction, a quarter of them would cut the
    // rate to half.
    let share = fleet.shares().into_iter().fold(1.0, f64::min);
    assert!((0.6..0.75).contains(&share), "{share}");
}

#[test]
fn a_gateway_at_which_nothing_runs_learns_of_a_cut_within_a_second() {
    let mut fleet = Fleet::of(3);
    fleet.gateways[1].every = 0;
    fleet.run(3000);
    fleet.gateways[2] = Gateway::start(99 << 32, limits(), fleet.millis);
    fleet.gateways[2].every = 0;
    let left = cut_one(&mut fleet);
    fleet.run(1000);
    assert_eq!(fleet.shares(), [left; 3]);
    fleet.gateways[0].every = 0;
    fleet.run(60_000);
    assert_eq!(fleet.shares(), [1.0; 3], "it grows all the same");
    let asked = fleet.store.asked;
    fleet.run(60_000);
    let asked = fleet.store.asked - asked;
    assert!(asked <= 3 * 76, "{asked} questions in a minute");
}

#[test]
fn an_order_to_one_gateway_pauses_all_and_a_longer_one_lengthens_the_pause() {
    let mut fleet = Fleet::of(3);
    fleet.run(3000);
    for pause in [5, 9] {
        let now = at(fleet.millis);
        fleet.gateways[0].backoff.obey(secs(pause), now);
        fleet.run(600);
        for gateway in &fleet.gateways {
            let until = gateway.backoff.paused_until().expect("a pause");
            let off = until.since(now).abs_diff(secs(pause));
            assert!(off <= ms(20), "{off:?}");
        }
    }
}

/// One gateway gets a Retry-After that is longer than the `max_pause` of the other one.
#[test]
fn a_pause_that_another_one_was_asked_for_lasts_as_long_as_the_own_file_allows_and_once() {
    let mut fleet = Fleet::of(2);
    let short = BackoffLimits {
        max_pause: secs(3),
        ..limits()
    };
    fleet.gateways[1] = Gateway::start(99 << 32, short, 0);
    fleet.retry_after = Some(secs(12));
    fleet.run(3000);
    fleet.gateways[0].trouble = 100;
    while fleet.gateways[0].backoff.paused_until().is_none() {
        fleet.run(1);
        assert!(fleet.millis < 20_000, "it never pauses");
    }
    let began = fleet.millis;
    fleet.gateways[0].trouble = 0;
    fleet.retry_after = None;
    let is_paused =
        |fleet: &Fleet, nth: usize| fleet.gateways[nth].backoff.paused_until().is_some();
    while fleet.millis < began + 11_500 {
        fleet.run(100);
        let passed = fleet.millis - began;
        assert!(is_paused(&fleet, 0));
        if !(2900..3200).contains(&passed) && passed > 300 {
            assert_eq!(is_paused(&fleet, 1), passed < 3000, "after {passed} ms");
        }
    }
}
