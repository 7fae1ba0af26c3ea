//! The worked examples of requests that cost more than one.

use super::*;
use crate::Reason;

const BURST: u32 = 10;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000 + millis * 1_000_000)
}

fn cost(cost: u32) -> Cost {
    Cost::new(cost).unwrap()
}

fn limit(of: u32) -> Limit {
    Limit {
        burst: BURST,
        delay: Delay::Above(0),
        max_wait: None,
        cost: cost(of),
        in_flight: None,
        above_burst: 0,
    }
}

/// A queue of 10r/s that requests of these costs join at once, with their charges.
fn queue(costs: &[u32]) -> (Queue<u64>, Vec<Charge>) {
    let mut queue = Queue::new("10r/s".parse().unwrap(), Bucket::new(), at(0));
    let join = |(ticket, of): (u64, &u32)| {
        let (_, charge) = queue.join(limit(*of), Ticket(ticket), at(0), || ticket);
        charge.unwrap()
    };
    let charges = (0..).zip(costs).map(join).collect();
    (queue, charges)
}

/// The waiters in order, each with the milliseconds at which it leaves.
fn departures(queue: &Queue<u64>) -> Vec<(u64, u64)> {
    let mut queue = queue.clone();
    let departures = std::iter::from_fn(|| queue.take_due(at(1_000_000)));
    let millis = |due: Moment| u64::try_from(due.since(at(0)).as_millis()).unwrap();
    departures.map(|it| (it.waiter, millis(it.due))).collect()
}

#[test]
fn a_request_waits_for_what_it_finds_and_its_cost_delays_those_after_it() {
    let (mut queue, _) = queue(&[1, 5, 1, 1]);
    assert_eq!(departures(&queue), [(1, 100), (2, 600), (3, 700)]);
    let refused = queue.charge(limit(5), at(0)).0;
    let Verdict::Reject(refusal) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((refusal.reason, refusal.retry_at), (Reason::Burst, at(200)));
    let (accepted, _) = queue.charge(limit(1), at(0));
    assert!(matches!(accepted, Verdict::Delay { until, .. } if until == at(800)));
}

#[test]
fn one_that_leaves_makes_room_for_all_that_it_costs() {
    let (mut queue, _) = queue(&[1, 5, 1, 1]);
    assert_eq!(queue.leave(Ticket(1)), Some(1));
    assert_eq!(departures(&queue), [(2, 100), (3, 200)]);
}

#[test]
fn a_bill_moves_those_behind_back_and_a_credit_forward() {
    let (mut queue, charges) = queue(&[1, 1, 1]);
    queue.settle(charges[0], cost(5), at(50));
    assert_eq!(departures(&queue), [(1, 500), (2, 600)]);
    let billed = charges[0].settled(cost(5));
    queue.settle(billed, cost(2), at(60));
    assert_eq!(departures(&queue), [(1, 200), (2, 300)]);
    queue.refund(billed.settled(cost(2)), at(70));
    assert_eq!(departures(&queue), [(1, 0), (2, 100)]);
}

#[test]
fn a_bill_for_a_bucket_that_has_run_empty_counts_from_now_on() {
    let (mut queue, charges) = queue(&[1]);
    queue.settle(charges[0], cost(5), at(3000));
    let (verdict, _) = queue.charge(limit(1), at(3000));
    assert!(matches!(verdict, Verdict::Delay { until, .. } if until == at(3400)));
}

#[test]
fn nobody_is_rejected_for_a_bill() {
    let (mut queue, charges) = queue(&[1; 11]);
    queue.settle(charges[0], cost(64), at(10));
    assert_eq!(queue.depth(), 10);
    assert_eq!(departures(&queue)[0], (1, 6400));
    let Verdict::Reject(refusal) = queue.charge(limit(1), at(10)).0 else {
        panic!("accepted");
    };
    assert_eq!(refusal.retry_at, at(6400));
}

#[test]
fn forgotten_waiters_stay_as_far_apart_as_they_cost() {
    let (mut queue, _) = queue(&[1, 5, 1, 1]);
    queue.forget(at(50));
    assert_eq!(departures(&queue), [(1, 100), (2, 600), (3, 700)]);
    let (mut queue, _) = self::queue(&[1, 1, 5, 1]);
    assert_eq!(queue.leave(Ticket(1)), Some(1));
    queue.forget(at(50));
    assert_eq!(departures(&queue), [(2, 100), (3, 600)]);
}
