//! Tests of leases.

use std::time::Duration;

use super::simulation::{Gateway, Simulation, Store};
use super::{Lease, LeaseAnswer, LeaseTerms, Leased};
use crate::{Algorithm, Cost, Delay, Limit, Moment};

const START: Moment = Moment::from_nanos(1_800_000_000_000_000_000);
const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Moment {
    START + Duration::from_millis(millis)
}

fn nodelay(burst: u32) -> Limit {
    Limit {
        burst,
        ..Limit::unlimited(Delay::Never, Cost::ONE)
    }
}

fn queued(burst: u32) -> Limit {
    Limit {
        delay: Delay::Above(0),
        ..nodelay(burst)
    }
}

/// Returns a slot that is usable until one instant and leased until another, in milliseconds.
fn leased(slot: u32, usable_until: u64, ends: u64) -> Leased<u32> {
    Leased {
        slot,
        usable_until: at(usable_until),
        ends: at(ends),
    }
}

fn terms(rate: &str) -> LeaseTerms {
    LeaseTerms {
        length: 20 * MS,
        rate: rate.parse().unwrap(),
        algorithm: Algorithm::LeakyBucket,
    }
}

/// Returns a lease whose key had `each` requests in each of three spans.
fn used(limit: Limit, each: u64) -> Lease<u32> {
    let mut lease = Lease::new(limit, START);
    for nth in 0..3 * each {
        lease.arrive(
            20 * MS,
            limit,
            START + 20 * MS * u32::try_from(nth).unwrap() / u32::try_from(each).unwrap(),
        );
    }
    lease
}

#[test]
fn half_of_what_two_spans_needed_is_taken_and_nothing_for_a_key_that_comes_once() {
    let (limit, terms) = (nodelay(10_000), terms("1000r/s"));
    assert_eq!(used(limit, 10).ahead(&terms, limit, at(60)), 5);
    assert_eq!(used(limit, 1).ahead(&terms, limit, at(60)), 0);
    let mut once = Lease::<u32>::new(limit, START);
    for _ in 0..100 {
        once.arrive(20 * MS, limit, at(30));
    }
    assert_eq!(once.ahead(&terms, limit, at(45)), 0);
    // Two spans later the demand is unknown.
    assert_eq!(used(limit, 10).ahead(&terms, limit, at(120)), 0);
}

#[test]
fn no_more_is_taken_than_is_used_in_half_of_the_room() {
    let terms = terms("1000r/s");
    // The burst is 10 ms long.
    assert_eq!(used(nodelay(10), 40).ahead(&terms, nodelay(10), at(60)), 10);
    assert_eq!(used(nodelay(0), 40).ahead(&terms, nodelay(0), at(60)), 0);
    let queue = queued(100);
    let mut lease = used(queue, 40);
    let found = lease.ahead(&terms, queue, at(60));
    assert_eq!(found, 0, "others would wait for it");
    lease.note_granted(at(65));
    assert_eq!(lease.ahead(&terms, queue, at(60)), 5, "all wait for 5 ms");
}

#[test]
fn other_limits_and_costs_have_no_part_in_it() {
    let (limit, other, terms) = (nodelay(100), nodelay(99), terms("1000r/s"));
    let costly = Limit {
        cost: Cost::new(2).unwrap(),
        ..limit
    };
    let mut lease = used(limit, 10);
    assert_eq!(lease.ahead(&terms, other, at(60)), 0);
    assert_eq!(used(costly, 10).ahead(&terms, costly, at(60)), 0);
    lease.add(leased(1, 70, 80));
    assert_eq!(lease.take(other, at(60)), None);
    assert_eq!(lease.take(limit, at(60)), Some(LeaseAnswer::Slot(1)));
    // Once the limit is not used any more, the lease switches to another one.
    lease.arrive(20 * MS, other, at(61));
    lease.arrive(20 * MS, other, at(200));
    lease.add(leased(2, 300, 300));
    assert_eq!(lease.take(other, at(201)), Some(LeaseAnswer::Slot(2)));
}

#[test]
fn a_slot_expires_at_its_time_and_is_returned_when_the_lease_ends() {
    let limit = nodelay(100);
    let mut lease = Lease::new(limit, START);
    for (slot, usable_until) in [(1, 10), (2, 20), (3, 50), (4, 60)] {
        lease.add(leased(slot, usable_until, usable_until.min(30)));
    }
    assert_eq!(lease.next_end(), Some(at(10)));
    assert_eq!(lease.take(limit, at(10)), Some(LeaseAnswer::Slot(2)));
    assert!(lease.end(at(29)).iter().map(|it| it.slot).eq([1]));
    let is_last_first = lease.end(at(30)).iter().map(|it| it.slot).eq([4, 3]);
    assert!(is_last_first, "the last one first");
    assert_eq!((lease.slots(), lease.next_end()), (0, None));
}

#[test]
fn a_refusal_is_repeated_until_the_store_would_accept_and_no_longer_than_the_lease() {
    let (limit, slow, fast) = (nodelay(100), terms("1r/s"), terms("10000r/s"));
    let mut lease = Lease::new(limit, START);
    let until = |lease: &Lease<u32>, terms, retry: u64, drains: u64| {
        let retry_at = at(60 + retry);
        let drains_in = Duration::from_millis(drains);
        lease.refusal_end(terms, at(60), retry_at, drains_in)
    };
    assert_eq!(until(&lease, &slow, 500, 100_000), at(80));
    assert_eq!(until(&lease, &slow, 7, 100_000), at(67));
    lease.refuse(limit, 9, at(67));
    assert_eq!(lease.take(limit, at(66)), Some(LeaseAnswer::Refused(9)));
    assert_eq!(lease.take(nodelay(99), at(66)), None);
    assert_eq!(lease.take(limit, at(67)), None);
    // For a busy key, refusals last for a part of the time in which the bucket drains.
    let until = until(&used(limit, 100), &fast, 0, 10);
    let is_a_part = (at(60) + 5 * MS / 4..=at(60) + 5 * MS / 2).contains(&until);
    assert!(is_a_part, "{until:?}");
}

/// Simulates `each` requests per second at each gateway for two seconds.
fn simulated(rate: &str, limit: Limit, length: Duration, each: &[u32]) -> Simulation {
    let gateways = (0..each.len()).map(|_| Gateway::new(limit, START));
    let store = Store::new(rate.parse().unwrap(), limit);
    let mut simulation = Simulation::new(store, length, gateways.collect(), START);
    for (gateway, each) in each.iter().enumerate() {
        // The gateways are not in step.
        let first = Duration::from_micros(37 * gateway as u64);
        for nth in 0..2 * *each {
            simulation.join(
                gateway,
                START + first + Duration::from_secs(nth.into()) / *each,
            );
        }
    }
    simulation.run(at(5000));
    simulation
}

#[test]
fn a_flooded_key_keeps_its_rate_with_far_fewer_asks_and_all_have_their_part() {
    for limit in [nodelay(1000), nodelay(200), queued(1000)] {
        let run = |length| simulated("6000r/s", limit, length, &[5000, 7000, 8000]);
        let (with, without) = (run(20 * MS), run(Duration::from_nanos(1)));
        let all = with.went_on().len();
        assert!(all * 100 >= without.went_on().len() * 97, "{all} {limit:?}");
        let asked = [with.store.asked, without.store.asked];
        assert!(asked[0] * 5 <= asked[1], "{asked:?} {limit:?}");
        for gateway in &with.gateways {
            let own = gateway.went_on.len();
            assert!(own * 5 > all, "{own} of {all} {limit:?}");
        }
    }
}

#[test]
fn below_the_rate_nobody_is_refused_for_the_leases_of_others() {
    for burst in [60, 200, 2000] {
        let simulation = simulated("6000r/s", nodelay(burst), 20 * MS, &[1600, 1700, 1800]);
        let refused: usize = simulation.gateways.iter().map(|it| it.refused).sum();
        assert_eq!(
            (refused, simulation.went_on().len()),
            (0, 10_200),
            "{burst}"
        );
        let asked = simulation.store.asked;
        assert!(asked < 10_200 / 2, "{burst}: {asked}");
    }
}

#[test]
fn below_the_rate_nobody_waits_for_the_leases_of_others() {
    let limit = queued(1000);
    let [with, without] = [20 * MS, Duration::from_nanos(1)].map(|length| {
        let simulation = simulated("6000r/s", limit, length, &[1600, 1700, 1800]);
        simulation.went_on()
    });
    let later: Duration = with
        .iter()
        .zip(&without)
        .map(|(it, other)| it.since(*other))
        .sum();
    assert!(later < MS * 10_200 / 5, "{later:?} for all");
}

#[test]
fn slots_of_an_idle_gateway_are_free_after_one_lease() {
    for limit in [nodelay(500), queued(500)] {
        let mut simulation = simulated("6000r/s", limit, 20 * MS, &[0, 8000]);
        // After that, another gateway has requests for a second, and leaves.
        let micros = Duration::from_micros;
        for nth in 0..8000 {
            simulation.join(0, at(6000) + micros(125 * nth));
        }
        for nth in 0..16_000 {
            simulation.join(1, at(6000) + micros(125 * nth + 60));
        }
        simulation.run(at(9000));
        let moments = simulation.gateways[1].went_on.iter();
        // The waiters then have joined before.
        let from = 7000 + 84 + 21;
        let count = moments.filter(|it| (at(from)..at(from + 500)).contains(*it));
        let count = count.count();
        assert!(count >= 3000 * 97 / 100, "{count} of 3000 {limit:?}");
    }
}
