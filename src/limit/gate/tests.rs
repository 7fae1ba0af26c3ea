//! Tests of the gate, which decides when a request may leave for the origin, and in which order.
//!
//! A *slot* is an instant at which a request may leave: the slots of 10r/s are 100 ms apart. A
//! *bill* charges slots after a departure, and a *credit* gives slots back.

use std::time::Duration;

use super::*;
use crate::fixtures::{at, millis_of, ms, rate};

fn limits(text: &str) -> GateLimits {
    GateLimits {
        rate: Some(rate(text)),
        max_in_flight: None,
        queue: Some(100),
        max_queue: 10_000,
    }
}

fn join(gate: &mut Gate<char, u32>, key: char, millis: u64) -> Admission {
    gate.join(&Share::of(key), Cost::ONE, at(millis), || 0)
}

/// Joins a request that must wait.
fn wait(gate: &mut Gate<char, u32>, share: &Share<char>, millis: u64) {
    let joined = gate.join(share, Cost::ONE, at(millis), || 0);
    assert!(matches!(joined, Admission::Waiting(_)), "{joined:?}");
}

/// Returns a rejection: whether the queue of all keys is full, and the milliseconds of a retry.
fn rejected(for_all: bool, retry: u64) -> Admission {
    let retry_at = at(retry);
    Admission::Rejected(Full { for_all, retry_at })
}

/// Takes the requests that leave by then: keys, and the milliseconds at which they are due.
fn take(gate: &mut Gate<char, u32>, millis: u64) -> Vec<(char, u64)> {
    let releases = std::iter::from_fn(|| gate.take(at(millis)));
    let releases = releases.map(|it| (it.key, millis_of(it.due)));
    releases.collect()
}

#[test]
fn a_bill_delays_later_departures_and_a_credit_moves_them_up() {
    let mut gate = Gate::new(limits("10r/s"));
    assert_eq!(join(&mut gate, 'a', 0), Admission::Passed);
    wait(&mut gate, &Share::of('b'), 10);
    gate.bill(4, at(50));
    assert_eq!(gate.due(), Some(at(500)));
    gate.credit(2, at(60));
    assert_eq!(gate.due(), Some(at(300)));
    gate.credit(3, at(150));
    assert_eq!(gate.due(), Some(at(150)), "time that has passed is lost");
    assert_eq!(take(&mut gate, 150), [('b', 150)]);
    // No request has left for long: a bill counts from now on.
    gate.bill(2, at(5000));
    wait(&mut gate, &Share::of('c'), 5000);
    assert_eq!(gate.due(), Some(at(5200)));
}

/// Fills the queue of a key, which has room for two waiters and for `above_queue` more.
///
/// `waiters` may wait. The next one is rejected, and may retry after `retry` ms.
fn filled(
    rate: &str,
    above_queue: u32,
    waiters: u32,
    retry: u64,
) -> (Gate<char, u32>, Share<char>) {
    let mut gate = Gate::new(GateLimits {
        queue: Some(2),
        ..limits(rate)
    });
    let share = Share {
        above_queue,
        ..Share::of('a')
    };
    assert_eq!(join(&mut gate, 'a', 0), Admission::Passed);
    for _ in 0..waiters {
        wait(&mut gate, &share, 0);
    }
    let joined = gate.join(&share, Cost::ONE, at(0), || 0);
    assert_eq!(joined, rejected(false, retry));
    (gate, share)
}

#[test]
fn requests_may_wait_above_the_queue_of_their_key() {
    let (mut gate, _) = filled("10r/s", 3, 5, 100);
    // Three of five must leave to make room for a request without `above_queue`.
    assert_eq!(join(&mut gate, 'a', 0), rejected(false, 400));
    wait(&mut gate, &Share::of('b'), 0);
}

#[test]
fn a_request_above_the_queue_waits_for_a_minute_at_most() {
    let (mut gate, share) = filled("10r/m", 128, 10, 6000);
    // Within the queue of its key, a request may wait longer.
    gate.set_limits(limits("10r/m"), at(0));
    wait(&mut gate, &share, 0);
}

#[test]
fn changed_limits_lose_no_waiter() {
    let mut gate = Gate::new(limits("1r/s"));
    join(&mut gate, 'a', 0);
    for _ in 0..3 {
        join(&mut gate, 'a', 0);
    }
    assert_eq!(take(&mut gate, 1000), [('a', 1000)]);
    gate.set_limits(limits("10r/s"), at(1050));
    assert_eq!(gate.due(), Some(at(1100)));
    let permits = GateLimits {
        rate: None,
        max_in_flight: Some(1),
        ..limits("1r/s")
    };
    gate.set_limits(permits, at(1060));
    assert_eq!(gate.due(), None, "two are at the origin");
    gate.give_back(at(1070));
    gate.give_back(at(1080));
    assert_eq!(take(&mut gate, 1080), [('a', 1080)]);
    gate.set_limits(limits("10r/s"), at(1090));
    assert_eq!(take(&mut gate, 1100), [('a', 1090)]);
    assert_eq!(gate.depth(), 0);
}

#[test]
fn waits_are_predicted_as_in_the_documented_example() {
    let mut gate = Gate::new(GateLimits {
        max_in_flight: Some(0),
        ..limits("10r/s")
    });
    for key in "aaaaabb".chars() {
        join(&mut gate, key, 0);
    }
    gate.set_limits(limits("10r/s"), at(0));
    assert_eq!(gate.predict(&Share::of('c'), at(0)), Ok(ms(200)));
    assert_eq!(gate.predict(&Share::of('a'), at(0)), Ok(ms(700)));
}

#[test]
fn a_rejected_key_gets_the_instant_of_a_retry() {
    let mut gate = Gate::new(GateLimits {
        queue: Some(2),
        max_queue: 5,
        ..limits("1r/s")
    });
    for key in "aaabb".chars() {
        assert!(!matches!(join(&mut gate, key, 0), Admission::Rejected(_)));
    }
    // One of `a` has left, so one of `b` leaves at 1 s: then `b` has room again.
    assert_eq!(join(&mut gate, 'b', 0), rejected(false, 1000));
    let fewer = GateLimits {
        max_queue: 4,
        ..*gate.limits()
    };
    gate.set_limits(fewer, at(0));
    assert_eq!(join(&mut gate, 'c', 0), rejected(true, 1000));
    assert_eq!(gate.clear().len(), 4);
}

#[test]
fn a_lowered_bound_delays_the_instant_of_a_retry() {
    let mut gate = Gate::new(limits("1r/s"));
    for key in "aaaaaaaab".chars() {
        join(&mut gate, key, 0);
    }
    // One has left, and eight wait.
    let mut rejection = |queue, max_queue| {
        let lowered = GateLimits {
            queue: Some(queue),
            max_queue,
            ..*gate.limits()
        };
        gate.set_limits(lowered, at(0));
        match join(&mut gate, 'a', 0) {
            Admission::Rejected(full) => (full.for_all, full.retry_at.since(at(0)).as_secs()),
            other => panic!("{other:?}"),
        }
    };
    // Six of `a` must leave, and `b` leaves among them.
    assert_eq!(rejection(2, 100), (false, 7));
    assert_eq!(rejection(100, 3), (true, 6));
}

/// Lets each key send requests at a constant rate (requests a second) for ten seconds.
///
/// Returns the number of requests a second of each key that leave in the second half.
fn served_a_second(rate: &str, demands: &[u64]) -> Vec<u64> {
    let mut gate = Gate::new(limits(rate));
    let mut arrivals: Vec<(Moment, usize)> = Vec::new();
    for (key, demand) in demands.iter().enumerate() {
        let after = |nth: u64| Duration::from_nanos(nth * 1_000_000_000 / demand + key as u64);
        arrivals.extend((0..10 * demand).map(|nth| (at(0) + after(nth), key)));
    }
    arrivals.sort_unstable();
    // Two more than in five seconds, to round the mean of a second.
    let mut served = vec![2; demands.len()];
    let mut count = |key: usize, due: Moment| {
        served[key] += u64::from(due > at(5000) && due <= at(10_000));
    };
    for (now, key) in arrivals {
        while let Some(release) = gate.take(now) {
            count(release.key, release.due);
        }
        if gate.join(&Share::of(key), Cost::ONE, now, || ()) == Admission::Passed {
            count(key, now);
        }
    }
    served.iter().map(|served| served / 5).collect()
}

#[test]
fn demands_get_their_max_min_share() {
    let found = served_a_second("100r/s", &[10, 20, 100, 100]);
    assert_eq!(found, [10, 20, 35, 35]);
    assert_eq!(served_a_second("14r/s", &[3, 7, 9, 1]), [3, 5, 5, 1]);
    assert_eq!(served_a_second("100r/s", &[1000]), [100]);
}

#[test]
fn a_request_that_waited_elsewhere_gets_its_position_in_the_queue_of_its_key() {
    let mut gate = Gate::new(limits("10r/s"));
    assert_eq!(join(&mut gate, 'a', 0), Admission::Passed);
    let mut positions = Vec::new();
    // Key, milliseconds since which it has waited, milliseconds at which it joins, and name.
    for (key, since, now, name) in [
        ('a', 10, 10, 1),
        ('a', 30, 30, 3),
        ('b', 35, 35, 10),
        ('a', 50, 50, 5),
        // The next four requests of `a` join at 60 ms, and get the positions of their `since`.
        ('a', 5, 60, 0),
        ('a', 20, 60, 2),
        ('a', 40, 60, 4),
        ('a', 60, 60, 6),
        ('b', 1, 60, 9),
    ] {
        let share = Share::of(key);
        match gate.join_since(&share, Cost::ONE, at(since), at(now), || name) {
            Admission::Waiting(position) => positions.push(position),
            other => panic!("{other:?}"),
        }
    }
    // A waiter that was moved leaves, and the ones behind it move up.
    assert_eq!(gate.leave(&positions[5]), Some(2));
    let released = std::iter::from_fn(|| gate.take(at(10_000)));
    let (names, due): (Vec<u32>, Vec<Moment>) = released.map(|it| (it.waiter, it.due)).unzip();
    // The names of `b` are 9 and 10.
    let (of_a, of_b): (Vec<u32>, Vec<u32>) = names.into_iter().partition(|name| *name < 9);
    assert_eq!(of_a, [0, 1, 3, 4, 5, 6]);
    assert_eq!(of_b, [9, 10]);
    // The slots do not change.
    assert!(due.into_iter().eq((1..=8).map(|nth| at(100 * nth))));
}
