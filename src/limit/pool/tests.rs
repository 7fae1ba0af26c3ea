//! Tests of permits that a gateway leases from a pool.
//!
//! The pool of the origin has 40 permits, one for each request at the origin, and four gateways.

use super::*;
use crate::fixtures::{at, nonzero, secs};

fn pool_client(without: WithoutPool) -> PoolClient {
    PoolClient::new(PoolLimits {
        permits: 40,
        orphan: secs(75),
        without,
        gateways: Some(nonzero(4)),
    })
}

/// Returns the needs of a gateway: requests that have a permit, and requests that wait for one.
fn needs(in_use: usize, waiting: usize) -> PermitNeeds {
    PermitNeeds {
        in_use,
        waiting,
        max_permits: 40,
        weight: 1,
        ..PermitNeeds::default()
    }
}

/// Returns a reply of the pool: permits that are leased, and those that the gateway may keep.
fn leased(leased: usize, keeps: usize) -> PoolReply {
    PoolReply {
        leased,
        keeps,
        ..PoolReply::default()
    }
}

/// Calls the pool, which leases `permits` to a gateway that needs no more.
fn lease(client: &mut PoolClient, needed: PermitNeeds, permits: usize, millis: u64) {
    client.call(needed, at(millis));
    client.answered(&leased(permits, permits), needs(0, 0), at(millis));
}

#[test]
fn a_lease_counts_from_when_the_call_was_sent() {
    let mut client = pool_client(WithoutPool::Closed);
    assert_eq!(client.due(needs(0, 0)), Some(Moment::default()));
    client.call(needs(0, 0), at(0));
    assert_eq!(client.due(needs(0, 3)), None, "one call at a time");
    client.answered(&leased(2, 2), needs(0, 0), at(0));
    assert_eq!(client.max_in_flight(at(2349)), 2);
    let found = client.max_in_flight(at(2350));
    assert_eq!(found, 0, "2.4 s less what clocks drift");
}

#[test]
fn a_lost_answer_lends_nothing_and_what_is_given_back_counts_before_it_is_sent() {
    let mut client = pool_client(WithoutPool::Closed);
    lease(&mut client, needs(0, 5), 5, 0);
    client.call(needs(5, 5), at(10));
    client.failed();
    assert_eq!(client.held(), 5);
    assert_eq!(client.due(needs(5, 5)), Some(at(60)));
    // Others request some: the permit of a request that ends is not used again.
    let call = client.call(needs(5, 5), at(60));
    assert_eq!((call.number, call.held, call.usable), (3, 5, 10));
    let fewer = PoolReply {
        others_wait: true,
        ..leased(5, 3)
    };
    client.answered(&fewer, needs(5, 0), at(60));
    client.ended(4, at(60));
    assert_eq!(client.held(), 4);
    assert_eq!(client.call(needs(4, 5), at(61)).held, 4);
    client.failed();
    assert_eq!(client.held(), 4, "whether the pool knows or not");
}

#[test]
fn an_idle_gateway_keeps_two_and_one_that_was_busy_a_few_more_for_a_second() {
    let mut client = pool_client(WithoutPool::Closed);
    let call = client.call(needs(0, 0), at(0));
    assert_eq!((call.usable, call.requested), (0, 2));
    client.answered(&leased(2, 2), needs(0, 0), at(0));
    assert_eq!(
        client.due(needs(0, 0)),
        Some(at(200)),
        "others may want them"
    );
    for in_use in 1..=20 {
        client.started(in_use);
    }
    let call = client.call(needs(20, 0), at(200));
    assert_eq!((call.usable, call.requested), (20, 25));
    client.answered(&leased(25, 25), needs(0, 0), at(200));
    for millis in [900, 2000] {
        let found = client.call(needs(1, 0), at(millis)).held;
        assert_eq!(found, 25, "the second before counts");
        client.answered(&leased(25, 25), needs(0, 0), at(millis));
    }
    let call = client.call(needs(1, 0), at(3100));
    assert_eq!((call.held, call.requested), (3, 3));
}

/// The only permit is kept for one request, or for 40 ms of them, and 2 ms for the next one.
#[test]
fn the_only_permit_is_kept_for_one_turn_while_others_wait() {
    let others_wait = PoolReply {
        others_wait: true,
        ..leased(1, 0)
    };
    let begin = |answered: u64| {
        let mut client = pool_client(WithoutPool::Closed);
        client.call(needs(0, 3), at(0));
        client.answered(&others_wait, needs(0, 0), at(answered));
        assert_eq!(client.max_in_flight(at(answered)), 1);
        client
    };
    let mut client = begin(1);
    client.ended(0, at(39));
    assert_eq!(client.held(), 1, "short requests share a turn");
    client.call(needs(1, 2), at(40));
    client.answered(&others_wait, needs(1, 0), at(41));
    client.ended(0, at(41));
    assert_eq!(client.held(), 0);
    assert_eq!(client.due(needs(0, 2)), Some(at(41)), "it goes on at once");
    let mut client = begin(1);
    client.ended(0, at(20));
    assert_eq!(client.due(needs(0, 0)), Some(at(22)), "nobody comes");
    let call = client.call(needs(0, 0), at(22));
    assert_eq!((call.held, client.held()), (0, 0));
    // Far from the pool a turn is longer.
    let mut client = begin(10);
    client.ended(0, at(409));
    assert_eq!(client.held(), 1);
    client.ended(0, at(410));
    assert_eq!(client.held(), 0);
}

#[test]
fn a_suspended_gateway_calls_the_pool_before_it_goes_alone() {
    let mut client = pool_client(WithoutPool::Local);
    lease(&mut client, needs(0, 0), 2, 0);
    client.call(needs(2, 9), at(800));
    // The process was suspended for 20 s while the call was under way.
    assert_eq!(client.max_in_flight(at(21_000)), 0);
    client.failed();
    assert_eq!(client.permit_source(), PermitSource::Pool);
    assert_eq!(client.max_in_flight(at(21_000)), 0);
    client.call(needs(2, 9), at(21_000));
    client.failed();
    // A quarter of 40, as configured.
    assert_eq!(client.permit_source(), PermitSource::Alone(10));
    assert_eq!(client.max_in_flight(at(21_100)), 10);
    let call = client.call(needs(10, 9), at(21_200));
    assert_eq!((call.in_use, call.members), (10, KnownMembers::default()));
    client.answered(&leased(12, 12), needs(0, 0), at(21_200));
    assert_eq!(client.max_in_flight(at(21_300)), 12);
}

#[test]
fn a_gateway_without_pool_that_is_closed_starts_nothing() {
    let mut client = pool_client(WithoutPool::Closed);
    client.call(needs(0, 1), at(0));
    client.failed();
    assert!(client.is_out());
    assert_eq!(client.permit_source(), PermitSource::Pool);
    assert_eq!(client.max_in_flight(at(200)), 0);
}

#[test]
fn a_gateway_that_leaves_returns_all_permits() {
    let mut client = pool_client(WithoutPool::Local);
    lease(&mut client, needs(0, 0), 2, 0);
    client.leave();
    assert!(!client.has_returned_all(needs(0, 0)));
    let call = client.call(needs(0, 0), at(5));
    assert_eq!((call.held, call.requested, call.leaves), (0, 0, true));
    client.answered(&leased(0, 0), needs(0, 0), at(5));
    assert!(client.has_returned_all(needs(0, 0)));
    assert_eq!(client.due(needs(0, 0)), None);
    let is_due = client.due(needs(0, 1)).is_some();
    assert!(is_due, "someone still comes from a zone");
}

/// The pool may have leased them to others, and have forgotten that.
#[test]
fn permits_that_are_no_longer_withheld_are_not_claimed() {
    let claimed = |after_lease: u64| {
        let mut client = pool_client(WithoutPool::Closed);
        client.call(needs(0, 5), at(0));
        client.answered(&leased(5, 5), needs(0, 5), at(0));
        client.started(2);
        client.call(needs(2, 0), at(2350 + after_lease)).held
    };
    assert_eq!((claimed(0), claimed(73_000)), (4, 4));
    // A clock that is 2 % slow shows 73.5 s when 75 s have passed.
    assert_eq!(claimed(73_500), 2);
}

#[test]
fn a_maximum_lowered_by_backoff_is_reported_and_divided_without_the_pool() {
    let mut client = pool_client(WithoutPool::Local);
    // Maximum of all gateways, what is reported of it, and the part of one gateway. The configured
    // number, or a higher one in a file that others have not read yet, is no bound.
    let rows = [
        (12, Some(12), 3),
        (2, Some(2), 1),
        (40, None, 10),
        (80, None, 10),
    ];
    for (maximum, reported, alone) in rows {
        let needed = PermitNeeds {
            maximum: Some(maximum),
            ..needs(0, 9)
        };
        assert_eq!(client.call(needed, at(0)).lowered_maximum, reported);
        client.failed();
        assert_eq!(client.permit_source(), PermitSource::Alone(alone));
    }
}
