//! Tests of schedules that the store assigns.

use super::*;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn seat(line: &mut ExternalSchedule<&'static str, u64>, name: &'static str, ticket: u64, due: u64) {
    line.seat(0, Ticket(ticket), at(ticket), name, (at(due), due));
}

fn leaves(line: &mut ExternalSchedule<&'static str, u64>, now: u64) -> Vec<(&'static str, u64)> {
    std::iter::from_fn(|| line.take_due(at(now)))
        .map(|departed| (departed.waiter, departed.charge))
        .collect()
}

#[test]
fn the_first_waiter_takes_the_first_time_regardless_of_its_assignment() {
    let mut line = ExternalSchedule::default();
    seat(&mut line, "a", 1, 100);
    seat(&mut line, "b", 2, 200);
    // The time of a slot that another waiter gave back.
    seat(&mut line, "c", 3, 50);
    assert_eq!(
        (line.depth(), line.due(), line.oldest()),
        (3, Some(at(50)), Some(at(1)))
    );
    assert_eq!(leaves(&mut line, 100), [("a", 50), ("b", 100)]);
    assert_eq!(leaves(&mut line, 199), []);
    assert_eq!(leaves(&mut line, 200), [("c", 200)]);
    assert_eq!(
        (line.depth(), line.due(), line.is_busy(0)),
        (0, None, false)
    );
}

#[test]
fn a_waiter_that_leaves_returns_the_last_time() {
    let mut line = ExternalSchedule::default();
    for (ticket, name) in [(1, "a"), (2, "b"), (3, "c")] {
        seat(&mut line, name, ticket, ticket * 100);
    }
    assert_eq!(line.leave(Ticket(1), |_, _| true), Some(300));
    assert_eq!(line.leave(Ticket(1), |_, _| true), None);
    assert_eq!(leaves(&mut line, 1000), [("b", 100), ("c", 200)]);
}

#[test]
fn a_waiter_that_leaves_returns_a_charge_of_its_cost() {
    let mut line = ExternalSchedule::default();
    // The waiters are costs, and so are the charges.
    for (ticket, cost) in [(1, 5), (2, 1), (3, 5), (4, 1)] {
        line.seat(
            0,
            Ticket(ticket),
            at(ticket),
            cost,
            (at(ticket * 100), cost),
        );
    }
    let found = line.leave(Ticket(1), |cost, charge| cost == charge);
    assert_eq!(found, Some(5));
    let departed = std::iter::from_fn(|| line.take_due(at(1000)));
    let departed: Vec<_> = departed
        .map(|departed| (departed.waiter, departed.due, departed.charge))
        .collect();
    assert_eq!(
        departed,
        [(1, at(100), 5), (5, at(200), 1), (1, at(400), 1)]
    );
}

#[test]
fn an_exchanged_time_keeps_the_order_of_waiters() {
    let mut line = ExternalSchedule::default();
    for (ticket, name) in [(1, "a"), (2, "b"), (3, "c")] {
        seat(&mut line, name, ticket, ticket * 100);
    }
    let is = |which: u64| move |charge: &u64| *charge == which;
    assert_eq!(line.exchange(0, is(100), (at(250), 250)), Ok(()));
    assert_eq!(line.exchange(0, is(100), (at(260), 260)), Err(260));
    assert_eq!(line.exchange(7, is(200), (at(260), 260)), Err(260));
    let times: Vec<_> = line.times().map(|(.., charge)| *charge).collect();
    assert_eq!(times, [200, 250, 300]);
    assert_eq!(leaves(&mut line, 250), [("a", 200), ("b", 250)]);
}

#[test]
fn first_times_are_left_unused_and_later_ones_taken_instead() {
    let cost = |cost: u32| Cost::new(cost).unwrap();
    // Charges are costs. The added slots begin at 1000 and are 10 apart.
    let postponed = |costs: &[u32], most: u32| {
        let mut line = ExternalSchedule::default();
        for (ticket, cost) in (1..).zip(costs) {
            line.seat(0, Ticket(ticket), at(0), (), (at(ticket * 100), *cost));
        }
        let later = |from: u32, cost: Cost| (at(1000 + u64::from(from) * 10), cost.get());
        let cost_of = |charge: &u32| Cost::new(*charge);
        line.postpone(7, cost(most), cost_of, later);
        line.postpone(0, cost(most), cost_of, later);
        let times = line.times();
        let times = times.map(|(_, due, charge)| (due.as_nanos() / 1_000_000, *charge));
        times.collect::<Vec<_>>()
    };
    let found = postponed(&[1, 1, 1], 2);
    assert_eq!(
        found,
        [(300, 1), (1000, 1), (1010, 1)],
        "each is as many behind"
    );
    assert_eq!(postponed(&[1, 1], 5), [(1030, 1), (1040, 1)]);
    assert_eq!(postponed(&[2, 2, 2], 5), [(300, 2), (1010, 2), (1030, 2)]);
    assert_eq!(postponed(&[5, 1], 4), [(100, 5), (200, 1)]);
    // 0 is no cost: that time stays.
    assert_eq!(postponed(&[0, 1, 1], 1), [(100, 0), (300, 1), (1000, 1)]);
    assert_eq!(postponed(&[], 3), []);
}

#[test]
fn times_that_are_exchanged_are_in_order_again() {
    let mut line = ExternalSchedule::default();
    for (ticket, name) in [(1, "a"), (2, "b"), (3, "c")] {
        seat(&mut line, name, ticket, ticket * 100);
    }
    line.exchange_some(|_, charge| (*charge == 300).then_some((at(150), 150)));
    assert_eq!(leaves(&mut line, 150), [("a", 100), ("b", 150)]);
    assert_eq!((line.next_delay(), line.due()), (Some(0), Some(at(200))));
}

#[test]
fn lanes_wait_apart_and_all_are_sent_away_from_the_last_time_on() {
    let mut line = ExternalSchedule::default();
    line.seat(0, Ticket(1), at(1), "a", (at(300), 300));
    line.seat(5, Ticket(2), at(2), "b", (at(100), 100));
    line.seat(0, Ticket(3), at(3), "c", (at(400), 400));
    assert!(line.is_busy(0) && line.is_busy(5) && !line.is_busy(1));
    line.retime(|due| due + std::time::Duration::from_millis(50));
    assert_eq!(leaves(&mut line, 150), [("b", 100)]);
    assert_eq!(line.due(), Some(at(350)));
    assert_eq!(line.reject_all(), (vec!["a", "c"], vec![400, 300]));
    assert_eq!(line.depth(), 0);
}
