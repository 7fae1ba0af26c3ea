//! Scenarios of waiting rooms: crowds of visitors before a room, on a virtual clock.
//!
//! A visitor without a free *session* draws a *number* and polls with it, until a *call* reserves a
//! session for the visitor.

#![expect(clippy::cast_precision_loss, reason = "the numbers are small")]

mod crowd;

use std::collections::HashMap;
use std::time::Duration;

use testing::{is_long_run, some_of};

use super::tests::{KEYS, at, draw_waiting, limits};
use super::*;
use crowd::{Crowd, Run};

/// The crowd before a sale, from which the others differ in a few values.
const SALE: Crowd = Crowd {
    seed: 7,
    visitors: 20_000,
    come_within: 600.0,
    has_waves: false,
    stay: 30.0,
    swing: 0.0,
    vanish: 0.3,
    latency: 1.0,
};

#[test]
fn visitors_enter_in_order_and_never_exceed_sessions() {
    let part = if is_long_run() { 1 } else { 2 };
    let crowd = Crowd {
        visitors: SALE.visitors / part,
        come_within: SALE.come_within / part as f64,
        ..SALE
    };
    let mut run = Run::new(limits(500, "none", 10, 5), crowd);
    run.run();
    let called = run.called_in_order();
    assert!(called.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    assert!(run.most <= 500, "{}", run.most);
    for visit in &run.visits {
        assert!(!visit.voided, "who keeps to Retry-After loses no turn");
        let found = visit.entered.is_some();
        assert_eq!(found, !visit.vanishes || visit.drew.is_none());
    }
    let counts = run.room.counts();
    let vanished = run.visits.iter().filter(|it| it.entered.is_none()).count() as u64;
    assert_eq!(counts.lost, vanished);
    assert_eq!(counts.came + vanished, counts.drew);
    let entered = counts.walked_in + counts.came;
    assert_eq!(entered, counts.left, "all have left in the end");
    assert_eq!(run.room.state().waiting, 0);
    // A session is never free while a visitor waits.
    let (wasted, offered) = (run.wasted, run.offered);
    assert!(wasted < offered * 0.001, "{wasted} of {offered}");
    // A session is reserved for 5 s for a visitor who never comes, else until the poll: 2 s and
    // latency.
    let allowed = counts.lost as f64 * 5.0 + counts.came as f64 * 1.5;
    assert!(run.kept < allowed * 1.01, "{} of {allowed}", run.kept);
}

#[test]
fn new_visitors_come_at_the_pace_of_admit() {
    let crowd = Crowd {
        visitors: 3000,
        come_within: 100.0,
        ..SALE
    };
    let mut run = Run::new(limits(0, "10r/s", 60, 10), crowd);
    run.run();
    for pair in run.calls.windows(2) {
        let apart = pair[1].since(pair[0]);
        assert!(apart >= Duration::from_millis(100), "{apart:?}");
    }
    let took = run.calls[2999].since(run.calls[0]);
    let ideal = Duration::from_millis(299_900);
    let is_near = took >= ideal && took < ideal + Duration::from_secs(5);
    assert!(is_near, "{took:?}");
}

/// The load changes: visits get longer and shorter by 10 %, and visitors come in two waves.
#[test]
fn most_predicted_waits_are_right() {
    let (mut errors, mut longest) = (Vec::new(), 0.0);
    for seed in some_of(&[0, 1, 2, 3], 1) {
        let crowd = Crowd {
            seed,
            visitors: if is_long_run() { 12_000 } else { 6_000 },
            come_within: if is_long_run() { 1800.0 } else { 900.0 },
            vanish: 0.2,
            has_waves: true,
            swing: 0.1,
            ..SALE
        };
        let mut run = Run::new(limits(100, "none", 10, 5), crowd);
        run.run();
        for (predicted, happened) in run.waits(crowd.come_within / 3.0) {
            errors.push((predicted - happened).abs() / happened.max(2.0));
            longest = happened.max(longest);
        }
    }
    errors.sort_by(f64::total_cmp);
    let share =
        |most: f64| errors.iter().filter(|it| **it <= most).count() as f64 / errors.len() as f64;
    let shares = [0.1, 0.25].map(share);
    println!(
        "of {}, up to {longest:.0} s: {shares:.3?} within 10 % and 25 %",
        errors.len()
    );
    assert!(shares[0] >= 0.5 && shares[1] >= 0.9, "{shares:?}");
}

#[test]
fn a_crowd_before_the_opening_has_a_random_order_and_those_behind_their_own() {
    let opening = RoomLimits {
        opens: Some(at(300.0)),
        ..limits(50, "none", 10, 10)
    };
    let crowd = Crowd {
        visitors: 2000,
        come_within: 400.0,
        stay: 5.0,
        ..SALE
    };
    let mut run = Run::new(opening, crowd);
    run.run();
    let count = run.room.lotteries()[0].count;
    assert_eq!(run.room.lotteries().len(), 1);
    let (mut early, late): (Vec<_>, Vec<_>) = run
        .called_in_order()
        .into_iter()
        .partition(|(number, _)| *number <= count);
    assert!(early.iter().all(|(_, called)| *called >= at(300.0)));
    assert!(late.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    let last = early.iter().map(|it| it.1).max();
    assert!(late.first().is_none_or(|it| Some(it.1) >= last));
    let by_number = early.clone();
    early.sort_by_key(|it| it.1);
    let both = early.iter().zip(&by_number);
    let moved = both.filter(|(called, drawn)| called.0 != drawn.0).count();
    assert!(moved > early.len() * 9 / 10, "the order is random");
    assert!(run.visits.iter().all(|it| !it.voided));
}

#[test]
fn a_restart_changes_no_position() {
    let crowd = Crowd {
        visitors: 4000,
        come_within: 60.0,
        stay: 5.0,
        ..SALE
    };
    let mut run = Run::new(limits(100, "none", 10, 5), crowd);
    let mut visitor_by_number = HashMap::new();
    // The room restarts every ten seconds.
    for round in 1..=20 {
        while run.step_before(at(f64::from(round) * 10.0)) {}
        let saved = run.room.save(run.now);
        run.room = WaitingRoom::restore(saved, *run.room.limits(), run.now);
        let visits = run.visits.iter().enumerate();
        for (id, visit) in visits.filter(|(_, visit)| visit.number > 0) {
            let first = visitor_by_number.entry(visit.number).or_insert(id);
            assert_eq!(*first, id, "a number is given once");
        }
    }
    run.run();
    let called = run.called_in_order();
    assert!(called.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    assert!(run.most <= 100);
    assert!(run.visits.iter().all(|it| !it.voided));
}

/// A number that was drawn since the last save before a kill is not given twice.
///
/// A visitor who follows `Retry-After` keeps the position.
#[test]
fn after_a_kill_no_number_is_given_twice() {
    let mut room = WaitingRoom::new(limits(1, "none", 60, 5), at(0.0));
    assert_eq!(room.draw(KEYS, at(0.0)), Drawn::Inside(1));
    for number in 2..=5 {
        assert_eq!(draw_waiting(&mut room, at(1.0)).0, number);
    }
    let mut saved = room.save(at(1.0));
    saved.reserved = 1000;
    for number in 6..=9 {
        assert_eq!(draw_waiting(&mut room, at(1.5)).0, number);
    }
    let mut room = WaitingRoom::restore(saved, *room.limits(), at(2.0));
    let (number, waiting) = draw_waiting(&mut room, at(3.0));
    assert_eq!((number, waiting.position), (1001, Some(5)));
    // Number 7 still polls, the others of its time do not.
    let numbers = [2, 3, 4, 5, 7, 1001];
    for number in numbers {
        let waits = matches!(room.poll(number, KEYS, at(4.0)), Polled::Waits(_));
        assert!(waits, "{number}");
    }
    // The visitor inside leaves after a minute. Each visitor arrives when due and leaves at once.
    let mut entered = Vec::new();
    let mut now = at(4.0);
    while entered.len() < 6 && now < at(1000.0) {
        now = now + Duration::from_secs(1);
        for number in numbers {
            let is_outside = !entered.contains(&number);
            if is_outside && matches!(room.poll(number, KEYS, now), Polled::Inside(_)) {
                entered.push(number);
            }
        }
    }
    assert_eq!(entered, numbers);
}
