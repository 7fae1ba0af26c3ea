//! Tests of the queue: the bucket of a key and the requests that wait for it.
//!
//! A *charge* is what a request has raised the level of the bucket by. It is *refunded* if the
//! request leaves, and *settled* if its cost turns out to be another one.

use std::time::Duration;

use super::*;
use crate::fixtures::{cost, limit, rate};

const SECOND: u64 = 1_000_000_000;

const NODELAY: Delay = Delay::Never;

/// Returns the instant `seconds` after the Unix epoch. `seconds` is a decimal, such as `0.25`.
fn at(seconds: &str) -> Moment {
    let (whole, decimals) = seconds.split_once('.').unwrap_or((seconds, ""));
    let nanos = format!("{whole}{decimals:0<9}");
    Moment::from_nanos(nanos.parse().expect("seconds"))
}

/// Returns an empty queue at this rate.
fn queue(text: &str) -> Queue<u64> {
    Queue::new(rate(text), Bucket::new(), Moment::default())
}

/// Joins with the ticket as the waiter. Returns the charge if the request is accepted.
fn join(queue: &mut Queue<u64>, limit: Limit, ticket: u64, now: Moment) -> Option<Charge> {
    let (_, charge) = queue.join(limit, Ticket(ticket), now, || ticket);
    charge
}

/// Removes all waiters in order, each with its due instant.
fn drain(queue: &mut Queue<u64>) -> Vec<(u64, Moment)> {
    let end = Moment::from_nanos(u64::MAX);
    std::iter::from_fn(|| queue.take_due(end).map(|it| (it.waiter, it.due))).collect()
}

/// Returns when each arrival departs, or `None` if it is rejected.
///
/// Waiters are taken at their due instants.
fn departures(rate: Rate, limit: Limit, arrivals: &[Moment]) -> Vec<Option<Moment>> {
    let mut queue = Queue::new(rate, Bucket::new(), arrivals[0]);
    let mut departures = vec![None; arrivals.len()];
    let take = |queue: &mut Queue<usize>, until: Moment, departures: &mut Vec<_>| {
        while let Some(due) = queue.due().filter(|due| *due <= until) {
            let departure = queue.take_due(due).expect("it is due");
            assert_eq!(departure.due, due);
            departures[departure.waiter] = Some(due);
        }
    };
    for ((index, now), ticket) in arrivals.iter().enumerate().zip(0..) {
        take(&mut queue, *now, &mut departures);
        let (verdict, charge) = queue.join(limit, Ticket(ticket), *now, || index);
        assert_eq!(charge.is_none(), matches!(verdict, Verdict::Reject(_)));
        if let Verdict::Pass { .. } = verdict {
            departures[index] = Some(*now);
        }
    }
    take(&mut queue, Moment::from_nanos(u64::MAX), &mut departures);
    assert_eq!(queue.depth(), 0);
    departures
}

/// Rows: rate, burst, delay, the arrivals in seconds, and the departures (`R`: rejected).
#[test]
fn the_published_vectors() {
    let twelve = "1 1 1 1 2 2 2 2 3 3 3 3";
    let (queued, after_one) = (Delay::Above(0), Delay::Above(1));
    let eight = "0 0 0 0 0 0 0 0";
    let seven = "0 0.1 0.19 0.2 0.2 0.25 0.3";
    let many = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
    let spread = "0 0 0 0 0 0 0 0 0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0 1.1 1.2 R";
    for (text, burst, delay, arrivals, expected) in [
        ("10r/s", 0, queued, seven, "0 0.1 R 0.2 R R 0.3"),
        ("1r/s", 2, queued, twelve, "1 2 3 R 4 R R R 5 R R R"),
        ("1r/s", 2, NODELAY, twelve, "1 1 1 R 2 R R R 3 R R R"),
        ("1r/s", 2, after_one, twelve, "1 1 2 R 3 R R R 4 R R R"),
        ("2r/s", 5, queued, eight, "0 0.5 1 1.5 2 2.5 R R"),
        ("1r/m", 2, queued, "0 0 0 0", "0 60 120 R"),
        ("30r/m", 2, after_one, "0 0 0 0.2", "0 0 2 R"),
        ("10r/s", 20, Delay::Above(8), many, spread),
    ] {
        for start in [0, 1_700_000_000 * SECOND] {
            let moment = |seconds: &str| at(seconds) + Duration::from_nanos(start);
            let arrivals: Vec<_> = arrivals.split(' ').map(moment).collect();
            let expected: Vec<_> = expected
                .split(' ')
                .map(|departure| (departure != "R").then(|| moment(departure)))
                .collect();
            let found = departures(rate(text), limit(burst, delay), &arrivals);
            assert_eq!(found, expected, "{text} {burst} {delay:?}");
        }
    }
}

#[test]
fn the_leak_of_an_empty_bucket_is_not_refunded() {
    let mut queue = queue("1r/s");
    let charge = |queue: &mut Queue<u64>, ticket, now| {
        join(queue, limit(9, NODELAY), ticket, at(now)).expect("accepted")
    };
    let first = charge(&mut queue, 0, "0");
    let second = charge(&mut queue, 1, "0");
    let third = charge(&mut queue, 2, "0.5");
    let level = |queue: &Queue<u64>| queue.bucket().excess(queue.rate(), at("0.5")).requests();
    assert!((level(&queue) - 1.5).abs() < 1e-9);
    // Without the second request the third makes a level of 0.5: the charge is whole.
    queue.refund(second, at("0.5"));
    assert!((level(&queue) - 0.5).abs() < 1e-9);
    // Without the first request as well, the third makes a level of 0, not of -0.5.
    queue.refund(first, at("0.5"));
    assert!(level(&queue).abs() < 1e-9);
    queue.refund(third, at("0.5"));
    let (bucket, none) = (queue.bucket(), limit(0, NODELAY));
    assert_eq!(bucket.remaining(queue.rate(), none, at("0.5")), 1);
}

#[test]
fn a_queue_does_not_refund_charges_of_an_earlier_queue() {
    let mut queue = queue("1r/s");
    let charge = join(&mut queue, limit(9, NODELAY), 0, at("0")).expect("accepted");
    join(&mut queue, limit(9, NODELAY), 1, at("0"));
    let bucket = queue.bucket();
    let mut queue: Queue<u64> = Queue::new(queue.rate(), bucket, at("0.1"));
    queue.refund(charge, at("0.1"));
    assert_eq!(queue.bucket(), bucket);
}

/// The head of the lane stays. Other waiters join and leave. Two of them always wait.
#[test]
fn the_memory_of_a_lane_is_bounded_by_its_waiters() {
    let mut queue = queue("1r/366d");
    let limit = limit(1_000, Delay::Above(0));
    let mut now = at("0");
    for ticket in 0..4 {
        join(&mut queue, limit, ticket, now);
    }
    for ticket in 4..20_000 {
        now = now + Duration::from_nanos(1);
        join(&mut queue, limit, ticket, now);
        assert_eq!(queue.leave(Ticket(ticket - 2)), Some(ticket - 2));
        assert_eq!(queue.depth(), 3);
        assert!(queue.lanes[0].entries() <= 2 * 3 + 1);
        assert!(queue.ledger.len() <= 5);
    }
    assert_eq!(queue.lanes.len(), 1);
    assert_eq!(queue.arrivals.len(), 3);
}

/// The ledger has as many marks as the level has requests, for any number of requests.
#[test]
fn the_ledger_is_bounded_by_the_level() {
    let mut queue = queue("10r/s");
    for ticket in 0..20_000 {
        let now = Moment::from_nanos(ticket * SECOND / 17);
        join(&mut queue, limit(50, NODELAY), ticket, now);
        assert!(queue.ledger.len() <= 51);
    }
}

const DEEP: u64 = 10_000;

/// Returns a queue with [`DEEP`] waiters, and the charges of as many requests that passed before.
fn deep() -> (Queue<u64>, Vec<Charge>) {
    let (mut queue, limit) = (queue("1r/m"), limit(40_000, Delay::Above(0)));
    let nodelay = self::limit(40_000, NODELAY);
    let passed = (0..DEEP).filter_map(|ticket| join(&mut queue, nodelay, ticket, at("0")));
    let passed = passed.collect();
    for ticket in DEEP..2 * DEEP {
        join(&mut queue, limit, ticket, at("0"));
    }
    assert_eq!(queue.depth() as u64, DEEP);
    (queue, passed)
}

#[test]
fn ten_thousand_waiters_leave_from_the_middle_outwards() {
    let (mut queue, _) = deep();
    let middle = DEEP + DEEP / 2;
    for step in 0..DEEP / 2 {
        for ticket in [middle - 1 - step, middle + step] {
            assert_eq!(queue.leave(Ticket(ticket)), Some(ticket));
        }
    }
    assert_eq!((queue.depth(), queue.due()), (0, None));
    let nodelay = limit(40_000, NODELAY);
    let (verdict, _) = queue.join(nodelay, Ticket(0), at("0"), || 0);
    let Verdict::Pass { excess } = verdict else {
        panic!("{verdict:?}");
    };
    assert!((excess.requests() - 10_000.0).abs() < 1e-9);
}

#[test]
fn ten_thousand_refunds_and_retunes_keep_the_waiters_an_interval_apart() {
    let (mut queue, passed) = deep();
    for (index, charge) in passed.into_iter().enumerate().rev() {
        queue.refund(charge, at("0"));
        queue.retune(rate(if index % 2 == 0 { "1r/m" } else { "7r/m" }), at("0"));
    }
    assert_eq!(queue.rate(), rate("1r/m"));
    let due = drain(&mut queue);
    assert_eq!(due.len() as u64, DEEP);
    for ((who, when), expected) in due.into_iter().zip(0..) {
        assert_eq!(who, DEEP + expected);
        assert_eq!(when, Moment::from_nanos(expected * 60 * SECOND));
    }
}

#[test]
fn forget_drops_other_charges_and_keeps_the_pace_of_waiters() {
    let (mut queue, waits) = (queue("1r/s"), limit(20, Delay::Above(0)));
    // Ten requests pass, then three wait behind them. Four more pass between the waiters.
    for ticket in 0..10 {
        join(&mut queue, limit(20, NODELAY), ticket, at("100"));
    }
    join(&mut queue, waits, 10, at("100"));
    for ticket in 11..15 {
        join(&mut queue, limit(20, NODELAY), ticket, at("100"));
    }
    join(&mut queue, waits, 15, at("100"));
    join(&mut queue, waits, 16, at("100"));
    queue.forget(at("100.5"));
    // Three requests, minus the half that has leaked.
    let excess = queue.bucket().excess(queue.rate(), at("100.5"));
    assert!((excess.requests() - 2.5).abs() < 1e-9, "{excess:?}");
    join(&mut queue, waits, 17, at("100.5"));
    let order = [(10, at("101")), (15, at("102")), (16, at("103"))];
    assert_eq!(drain(&mut queue)[..3], order);
}

/// Returns a queue of 10r/s that requests of these costs join at once, and their charges.
///
/// The first request passes, the others wait.
fn queue_of_costs(costs: &[u32]) -> (Queue<u64>, Vec<Charge>) {
    let mut queue = Queue::new(rate("10r/s"), Bucket::new(), at("1"));
    let join = |(ticket, of_request): (u64, &u32)| {
        let limit = Limit {
            cost: cost(*of_request),
            ..limit(10, Delay::Above(0))
        };
        join(&mut queue, limit, ticket, at("1")).expect("accepted")
    };
    let charges = (0..).zip(costs).map(join).collect();
    (queue, charges)
}

#[test]
fn a_cost_billed_to_an_empty_bucket_counts_from_now_on() {
    let (mut queue, charges) = queue_of_costs(&[1]);
    queue.settle(charges[0], cost(5), at("4"));
    let (verdict, _) = queue.charge(limit(10, Delay::Above(0)), at("4"));
    assert!(matches!(verdict, Verdict::Delay { until, .. } if until == at("4.4")));
}

#[test]
fn forget_keeps_waiters_apart_by_their_costs() {
    let (mut queue, _) = queue_of_costs(&[1, 5, 1, 1]);
    queue.forget(at("1.05"));
    let order = [(1, at("1.1")), (2, at("1.6")), (3, at("1.7"))];
    assert_eq!(drain(&mut queue), order);
    let (mut queue, _) = queue_of_costs(&[1, 1, 5, 1]);
    assert_eq!(queue.leave(Ticket(1)), Some(1));
    queue.forget(at("1.05"));
    assert_eq!(drain(&mut queue), [(2, at("1.1")), (3, at("1.6"))]);
}
