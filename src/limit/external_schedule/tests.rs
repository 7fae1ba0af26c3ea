//! Tests of waiters whose departure times are assigned by the store that gateways share.
//!
//! A *charge* identifies a time for the store. Here it is the time itself, in milliseconds. The
//! waiters of a *lane* depart in the order of their tickets, and take the lane's times in order.

use super::*;
use crate::fixtures::{at, cost, millis_of};

type Line = ExternalSchedule<&'static str, u64>;

/// Adds a waiter that joined `ticket` ms after the start, and its time.
fn seat(line: &mut Line, name: &'static str, ticket: u64, due: u64) {
    line.seat(0, Ticket(ticket), at(ticket), name, (at(due), due));
}

/// Returns the waiters a, b and c, which the store has assigned the times 100, 200 and 300 ms.
fn three_waiters() -> Line {
    let mut line = Line::default();
    for (ticket, name) in [(1, "a"), (2, "b"), (3, "c")] {
        seat(&mut line, name, ticket, ticket * 100);
    }
    line
}

/// Takes all waiters that are due by `now`. Returns each with the charge of its time.
fn take_all<W, C>(line: &mut ExternalSchedule<W, C>, now: u64) -> Vec<(W, C)> {
    let departed = std::iter::from_fn(|| line.take_due(at(now)));
    departed.map(|it| (it.waiter, it.charge)).collect()
}

#[test]
fn the_first_waiter_takes_the_first_time_regardless_of_its_assignment() {
    let mut line = Line::default();
    seat(&mut line, "a", 1, 100);
    seat(&mut line, "b", 2, 200);
    // The time of a slot that another waiter gave back.
    seat(&mut line, "c", 3, 50);
    assert_eq!((line.depth(), line.due()), (3, Some(at(50))));
    assert_eq!(line.oldest(), Some(at(1)));
    assert_eq!(take_all(&mut line, 100), [("a", 50), ("b", 100)]);
    assert_eq!(take_all(&mut line, 199), []);
    assert_eq!(take_all(&mut line, 200), [("c", 200)]);
    assert_eq!((line.depth(), line.due()), (0, None));
    assert!(!line.is_busy(0));
}

#[test]
fn a_waiter_that_leaves_returns_the_last_time() {
    let mut line = three_waiters();
    assert_eq!(line.leave(Ticket(1), |_, _| true), Some(300));
    assert_eq!(line.leave(Ticket(1), |_, _| true), None);
    assert_eq!(take_all(&mut line, 1000), [("b", 100), ("c", 200)]);
}

#[test]
fn a_waiter_that_leaves_returns_a_charge_of_its_cost() {
    let mut line = ExternalSchedule::default();
    // A waiter is its cost. A charge is the cost and the milliseconds of its time.
    for (ticket, cost) in [(1, 5), (2, 1), (3, 5), (4, 1)] {
        let due = ticket * 100;
        line.seat(0, Ticket(ticket), at(ticket), cost, (at(due), (cost, due)));
    }
    let left = line.leave(Ticket(1), |cost, charge| *cost == charge.0);
    assert_eq!(left, Some((5, 300)));
    let departed = std::iter::from_fn(|| line.take_due(at(1000)));
    let departed: Vec<_> = departed.map(|it| (it.waiter, it.due, it.charge)).collect();
    let expected = [
        (1, at(100), (5, 100)),
        (5, at(200), (1, 200)),
        (1, at(400), (1, 400)),
    ];
    assert_eq!(departed, expected);
}

#[test]
fn an_exchanged_time_keeps_the_order_of_waiters() {
    let mut line = three_waiters();
    let is = |which: u64| move |charge: &u64| *charge == which;
    assert_eq!(line.exchange(0, is(100), (at(250), 250)), Ok(()));
    assert_eq!(line.exchange(0, is(100), (at(260), 260)), Err(260));
    assert_eq!(line.exchange(7, is(200), (at(260), 260)), Err(260));
    let times: Vec<_> = line.times().map(|(.., charge)| *charge).collect();
    assert_eq!(times, [200, 250, 300]);
    assert_eq!(take_all(&mut line, 250), [("a", 200), ("b", 250)]);
}

#[test]
fn postponed_waiters_take_later_times_instead_of_the_first_ones() {
    // The charges are costs, of times that are 100 ms apart. The later times begin at 1000 ms and
    // are 10 ms apart.
    let postpone = |costs: &[u32], total: u32| {
        let mut line = ExternalSchedule::default();
        for (ticket, cost) in (1..).zip(costs) {
            line.seat(0, Ticket(ticket), at(0), (), (at(ticket * 100), *cost));
        }
        let later = |before: u32, cost: Cost| (at(1000 + u64::from(before) * 10), cost.get());
        let cost_of = |charge: &u32| Cost::new(*charge);
        // No waiter has this `delay`, so nothing changes.
        line.postpone(7, cost(total), cost_of, later);
        line.postpone(0, cost(total), cost_of, later);
        let times = line.times();
        let times = times.map(|(_, due, charge)| (millis_of(due), *charge));
        times.collect::<Vec<_>>()
    };
    assert_eq!(postpone(&[1, 1, 1], 2), [(300, 1), (1000, 1), (1010, 1)]);
    assert_eq!(postpone(&[1, 1], 5), [(1030, 1), (1040, 1)]);
    assert_eq!(postpone(&[2, 2, 2], 5), [(300, 2), (1010, 2), (1030, 2)]);
    assert_eq!(postpone(&[5, 1], 4), [(100, 5), (200, 1)]);
    // 0 is no cost: that time stays.
    assert_eq!(postpone(&[0, 1, 1], 1), [(100, 0), (300, 1), (1000, 1)]);
    assert_eq!(postpone(&[], 3), []);
}

#[test]
fn times_that_are_exchanged_are_in_order_again() {
    let mut line = three_waiters();
    line.exchange_some(|_, charge| (*charge == 300).then_some((at(150), 150)));
    assert_eq!(take_all(&mut line, 150), [("a", 100), ("b", 150)]);
    assert_eq!((line.next_delay(), line.due()), (Some(0), Some(at(200))));
}

#[test]
fn lanes_wait_apart_and_reject_all_returns_the_latest_charge_first() {
    let mut line = ExternalSchedule::default();
    line.seat(0, Ticket(1), at(1), "a", (at(300), 300));
    line.seat(5, Ticket(2), at(2), "b", (at(100), 100));
    line.seat(0, Ticket(3), at(3), "c", (at(400), 400));
    assert!(line.is_busy(0) && line.is_busy(5) && !line.is_busy(1));
    line.retime(|due| due + std::time::Duration::from_millis(50));
    assert_eq!(take_all(&mut line, 150), [("b", 100)]);
    assert_eq!(line.due(), Some(at(350)));
    assert_eq!(line.reject_all(), (vec!["a", "c"], vec![400, 300]));
    assert_eq!(line.depth(), 0);
}
