//! Tests of requests that cost more than one.

use super::*;

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
        ..Limit::unlimited(Delay::Above(0), cost(of))
    }
}

/// Creates a queue of 10r/s that requests of these costs join at once. Returns their charges, too.
fn queue(costs: &[u32]) -> (Queue<u64>, Vec<Charge>) {
    let mut queue = Queue::new("10r/s".parse().unwrap(), Bucket::new(), at(0));
    let join = |(ticket, of): (u64, &u32)| {
        let (_, charge) = queue.join(limit(*of), Ticket(ticket), at(0), || ticket);
        charge.unwrap()
    };
    let charges = (0..).zip(costs).map(join).collect();
    (queue, charges)
}

/// Returns the waiters in order, each with the milliseconds at which it leaves.
fn departures(queue: &Queue<u64>) -> Vec<(u64, u64)> {
    let mut queue = queue.clone();
    let departures = std::iter::from_fn(|| queue.take_due(at(1_000_000)));
    let millis = |due: Moment| u64::try_from(due.since(at(0)).as_millis()).unwrap();
    departures.map(|it| (it.waiter, millis(it.due))).collect()
}

#[test]
fn a_bill_for_an_empty_bucket_counts_from_now_on() {
    let (mut queue, charges) = queue(&[1]);
    queue.settle(charges[0], cost(5), at(3000));
    let (verdict, _) = queue.charge(limit(1), at(3000));
    assert!(matches!(verdict, Verdict::Delay { until, .. } if until == at(3400)));
}

#[test]
fn forget_keeps_waiters_apart_by_their_costs() {
    let (mut queue, _) = queue(&[1, 5, 1, 1]);
    queue.forget(at(50));
    assert_eq!(departures(&queue), [(1, 100), (2, 600), (3, 700)]);
    let (mut queue, _) = self::queue(&[1, 1, 5, 1]);
    assert_eq!(queue.leave(Ticket(1)), Some(1));
    queue.forget(at(50));
    assert_eq!(departures(&queue), [(2, 100), (3, 600)]);
}
