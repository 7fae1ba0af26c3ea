//! Tests of leases, with a length of 20 ms.
//!
//! A key's *demand* is counted in *spans*, each as long as a lease. *Ahead* is the number of slots
//! that a gateway leases for later requests. The *room* of the bucket is the time in which it
//! drains from the highest level at which a request neither waits nor is refused.

use std::time::Duration;

use super::simulation::{Gateway, Simulation, Store};
use super::{Lease, LeaseAnswer, LeaseTerms, Leased};
use crate::fixtures::{START, at, limit, ms, rate};
use crate::{Algorithm, Cost, Delay, Limit};

/// Length of a lease.
const LENGTH: Duration = ms(20);

/// Returns a limit under which requests of the burst do not wait.
fn nodelay(burst: u32) -> Limit {
    limit(burst, Delay::Never)
}

/// Returns a limit under which requests of the burst wait for their slots.
fn queued(burst: u32) -> Limit {
    limit(burst, Delay::Above(0))
}

/// Returns a slot that is usable until one instant, and leased until another.
fn leased(slot: u32, usable_until: u64, ends: u64) -> Leased<u32> {
    Leased {
        slot,
        usable_until: at(usable_until),
        ends: at(ends),
    }
}

fn terms(per_second: &str) -> LeaseTerms {
    LeaseTerms {
        length: LENGTH,
        rate: rate(per_second),
        algorithm: Algorithm::LeakyBucket,
    }
}

/// Returns a lease whose key had `each` requests in each of three spans, up to 60 ms.
fn used(limit: Limit, each: u32) -> Lease<u32> {
    let mut lease = Lease::new(limit, START);
    for nth in 0..3 * each {
        lease.arrive(LENGTH, limit, START + LENGTH * nth / each);
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
        once.arrive(LENGTH, limit, at(30));
    }
    assert_eq!(once.ahead(&terms, limit, at(45)), 0);
    // Two spans later the demand is unknown.
    assert_eq!(used(limit, 10).ahead(&terms, limit, at(120)), 0);
}

#[test]
fn no_more_is_taken_than_is_used_in_half_of_the_room() {
    let terms = terms("1000r/s");
    // A burst of 10 drains in 10 ms. Of the 40 requests in a span of 20 ms, 20 come in that time,
    // and half of them is taken.
    assert_eq!(used(nodelay(10), 40).ahead(&terms, nodelay(10), at(60)), 10);
    assert_eq!(used(nodelay(0), 40).ahead(&terms, nodelay(0), at(60)), 0);
    let queue = queued(100);
    let mut lease = used(queue, 40);
    let found = lease.ahead(&terms, queue, at(60));
    assert_eq!(found, 0, "others would wait for it");
    // The store has granted a slot at 65 ms, so all requests wait until then. Of the 40 requests in
    // a span, 10 come in these 5 ms.
    lease.note_granted(at(65));
    assert_eq!(lease.ahead(&terms, queue, at(60)), 5, "all wait for 5 ms");
}

// A lease serves only requests of its own limit, and of cost 1.
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
    lease.arrive(LENGTH, other, at(61));
    lease.arrive(LENGTH, other, at(200));
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
    // Milliseconds until the store would accept a request, and until the bucket has drained.
    let until = |lease: &Lease<u32>, terms, accepts_in: u64, drains_in: u64| {
        lease.refusal_end(terms, at(60), at(60 + accepts_in), ms(drains_in))
    };
    assert_eq!(until(&lease, &slow, 500, 100_000), at(80));
    assert_eq!(until(&lease, &slow, 7, 100_000), at(67));
    lease.refuse(limit, 9, at(67));
    assert_eq!(lease.take(limit, at(66)), Some(LeaseAnswer::Refused(9)));
    assert_eq!(lease.take(nodelay(99), at(66)), None);
    assert_eq!(lease.take(limit, at(67)), None);
    // For a busy key, refusals last for an eighth to a quarter of the 10 ms in which the bucket
    // drains.
    let until = until(&used(limit, 100), &fast, 0, 10);
    let is_a_part = (at(60) + ms(5) / 4..=at(60) + ms(5) / 2).contains(&until);
    assert!(is_a_part, "{until:?}");
}

/// A length of leases with which there are none.
const NO_LEASES: Duration = Duration::from_nanos(1);

/// Simulates two seconds of requests at a key of 6000r/s.
///
/// `each` has one number for each gateway: its requests per second.
fn simulated(limit: Limit, length: Duration, each: &[u32]) -> Simulation {
    let gateways = each.iter().map(|_| Gateway::new(limit, START));
    let store = Store::new(rate("6000r/s"), limit);
    let mut simulation = Simulation::new(store, length, gateways.collect(), START);
    for (gateway, each) in each.iter().enumerate() {
        // The gateways are not in step.
        let first = START + Duration::from_micros(37 * gateway as u64);
        for nth in 0..2 * *each {
            simulation.request(gateway, first + ms(1000) * nth / *each);
        }
    }
    simulation.run(at(5000));
    simulation
}

#[test]
fn a_flooded_key_keeps_its_rate_with_far_fewer_calls_and_all_have_their_part() {
    for limit in [nodelay(1000), nodelay(200), queued(1000)] {
        let run = |length| simulated(limit, length, &[5000, 7000, 8000]);
        let (with, without) = (run(LENGTH), run(NO_LEASES));
        let all = with.passed().len();
        assert!(all * 100 >= without.passed().len() * 97, "{all} {limit:?}");
        let calls = [with.store.calls, without.store.calls];
        assert!(calls[0] * 5 <= calls[1], "{calls:?} {limit:?}");
        for gateway in &with.gateways {
            let own = gateway.passed.len();
            assert!(own * 5 > all, "{own} of {all} {limit:?}");
        }
    }
}

#[test]
fn below_the_rate_nobody_is_refused_for_the_leases_of_others() {
    for burst in [60, 200, 2000] {
        let simulation = simulated(nodelay(burst), LENGTH, &[1600, 1700, 1800]);
        assert!(
            simulation.gateways.iter().all(|it| it.refused == 0),
            "{burst}"
        );
        assert_eq!(simulation.passed().len(), 10_200, "{burst}");
        let calls = simulation.store.calls;
        assert!(calls < 10_200 / 2, "{burst}: {calls}");
    }
}

#[test]
fn below_the_rate_nobody_waits_for_the_leases_of_others() {
    let [with, without] = [LENGTH, NO_LEASES]
        .map(|length| simulated(queued(1000), length, &[1600, 1700, 1800]).passed());
    let both = with.iter().zip(&without);
    let later: Duration = both.map(|(with, without)| with.since(*without)).sum();
    assert!(later < ms(1) * 10_200 / 5, "{later:?} for all");
}

#[test]
fn slots_of_an_idle_gateway_are_free_after_one_lease() {
    for limit in [nodelay(500), queued(500)] {
        let mut simulation = simulated(limit, LENGTH, &[0, 8000]);
        // After that, gateway 0 has requests for a second, and gateway 1 for two seconds.
        let micros = Duration::from_micros;
        for nth in 0..8000 {
            simulation.request(0, at(6000) + micros(125 * nth));
        }
        for nth in 0..16_000 {
            simulation.request(1, at(6000) + micros(125 * nth + 60));
        }
        simulation.run(at(9000));
        let moments = simulation.gateways[1].passed.iter();
        // Gateway 0 is idle from 7000 ms on. The burst of 500 drains within 84 ms, and then a lease
        // of 20 ms ends. From there on, gateway 1 has the whole rate.
        let from = 7000 + 84 + 21;
        let count = moments.filter(|it| (at(from)..at(from + 500)).contains(*it));
        let count = count.count();
        assert!(count >= 3000 * 97 / 100, "{count} of 3000 {limit:?}");
    }
}
