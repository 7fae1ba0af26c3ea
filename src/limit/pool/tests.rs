//! Tests of permits that are leased from a pool.

use std::num::NonZeroU32;
use std::time::Duration;

use super::*;

const ORPHAN: Duration = Duration::from_secs(75);

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000_000_000) + Duration::from_millis(millis)
}

fn pool_client(without: WithoutPool) -> PoolClient {
    PoolClient::new(PoolLimits {
        permits: 40,
        orphan: ORPHAN,
        without,
        gateways: NonZeroU32::new(4),
    })
}

fn needs(in_use: usize, waiting: usize) -> PermitNeeds {
    PermitNeeds {
        in_use,
        waiting,
        max_permits: 40,
        weight: 1,
        ..PermitNeeds::default()
    }
}

fn leased(leased: usize, keeps: usize) -> PoolReply {
    PoolReply {
        leased,
        keeps,
        ..PoolReply::default()
    }
}

#[test]
fn a_lease_counts_from_when_the_call_was_sent() {
    let mut it = pool_client(WithoutPool::Closed);
    assert_eq!(it.due(needs(0, 0)), Some(Moment::default()));
    it.call(needs(0, 0), at(0));
    assert_eq!(it.due(needs(0, 3)), None, "one call at a time");
    it.answered(&leased(2, 2), needs(0, 0), at(0));
    assert_eq!(it.max_in_flight(at(2349)), 2);
    assert_eq!(
        it.max_in_flight(at(2350)),
        0,
        "2.4 s less what clocks drift"
    );
}

#[test]
fn a_lost_answer_lends_nothing_and_what_is_given_back_counts_before_it_is_sent() {
    let mut it = pool_client(WithoutPool::Closed);
    it.call(needs(0, 5), at(0));
    it.answered(&leased(5, 5), needs(0, 0), at(0));
    it.call(needs(5, 5), at(10));
    it.failed();
    assert_eq!(it.held(), 5);
    assert_eq!(it.due(needs(5, 5)), Some(at(60)));
    // Others request some: the permit of a request that ends is not used again.
    let call = it.call(needs(5, 5), at(60));
    assert_eq!((call.number, call.held, call.usable), (3, 5, 10));
    let fewer = PoolReply {
        others_wait: true,
        ..leased(5, 3)
    };
    it.answered(&fewer, needs(5, 0), at(60));
    it.ended(4, at(60));
    assert_eq!(it.held(), 4);
    assert_eq!(it.call(needs(4, 5), at(61)).held, 4);
    it.failed();
    assert_eq!(it.held(), 4, "whether the pool knows or not");
}

#[test]
fn an_idle_gateway_keeps_two_and_one_that_was_busy_a_few_more_for_a_second() {
    let mut it = pool_client(WithoutPool::Closed);
    let call = it.call(needs(0, 0), at(0));
    assert_eq!((call.usable, call.requested), (0, 2));
    it.answered(&leased(2, 2), needs(0, 0), at(0));
    assert_eq!(it.due(needs(0, 0)), Some(at(200)), "others may want them");
    for in_use in 1..=20 {
        it.started(in_use);
    }
    let call = it.call(needs(20, 0), at(200));
    assert_eq!((call.usable, call.requested), (20, 25));
    it.answered(&leased(25, 25), needs(0, 0), at(200));
    assert_eq!(it.call(needs(1, 0), at(900)).held, 25);
    it.answered(&leased(25, 25), needs(0, 0), at(900));
    let found = it.call(needs(1, 0), at(2000)).held;
    assert_eq!(found, 25, "the second before counts");
    it.answered(&leased(25, 25), needs(0, 0), at(2000));
    let call = it.call(needs(1, 0), at(3100));
    assert_eq!((call.held, call.requested), (3, 3));
}

/// The only permit is kept for one request, or for 40 ms of them, and 2 ms for the next one.
#[test]
fn the_only_permit_is_kept_for_one_turn_while_others_wait() {
    let waited_for = PoolReply {
        others_wait: true,
        ..leased(1, 0)
    };
    let begin = || {
        let mut it = pool_client(WithoutPool::Closed);
        it.call(needs(0, 3), at(0));
        it.answered(&waited_for, needs(0, 0), at(1));
        assert_eq!(it.max_in_flight(at(1)), 1);
        it
    };
    let mut it = begin();
    it.ended(0, at(39));
    assert_eq!(it.held(), 1, "short requests share a turn");
    it.call(needs(1, 2), at(40));
    it.answered(&waited_for, needs(1, 0), at(41));
    it.ended(0, at(41));
    assert_eq!(it.held(), 0);
    assert_eq!(it.due(needs(0, 2)), Some(at(41)), "it goes on at once");
    let mut it = begin();
    it.ended(0, at(20));
    assert_eq!(it.due(needs(0, 0)), Some(at(22)), "nobody comes");
    let call = it.call(needs(0, 0), at(22));
    assert_eq!((call.held, it.held()), (0, 0));
    // Far from the pool a turn is longer.
    let mut it = pool_client(WithoutPool::Closed);
    it.call(needs(0, 3), at(0));
    it.answered(&waited_for, needs(0, 0), at(10));
    it.ended(0, at(409));
    assert_eq!(it.held(), 1);
    it.ended(0, at(410));
    assert_eq!(it.held(), 0);
}

#[test]
fn a_suspended_gateway_calls_the_pool_before_it_goes_alone() {
    let mut it = pool_client(WithoutPool::Local);
    it.call(needs(0, 0), at(0));
    it.answered(&leased(2, 2), needs(0, 0), at(0));
    it.call(needs(2, 9), at(800));
    // The process was suspended for 20 s while the call was under way.
    assert_eq!(it.max_in_flight(at(21_000)), 0);
    it.failed();
    assert_eq!(
        (it.permit_source(), it.max_in_flight(at(21_000))),
        (PermitSource::Pool, 0)
    );
    it.call(needs(2, 9), at(21_000));
    it.failed();
    // A quarter of 40, as configured.
    assert_eq!(it.permit_source(), PermitSource::Alone(10));
    assert_eq!(it.max_in_flight(at(21_100)), 10);
    let call = it.call(needs(10, 9), at(21_200));
    assert_eq!((call.in_use, call.members), (10, KnownMembers::default()));
    it.answered(&leased(12, 12), needs(0, 0), at(21_200));
    assert_eq!(it.max_in_flight(at(21_300)), 12);
}

#[test]
fn a_gateway_without_pool_that_is_closed_starts_nothing() {
    let mut it = pool_client(WithoutPool::Closed);
    it.call(needs(0, 1), at(0));
    it.failed();
    assert!(it.is_out());
    assert_eq!(
        (it.permit_source(), it.max_in_flight(at(200))),
        (PermitSource::Pool, 0)
    );
}

#[test]
fn a_gateway_that_leaves_returns_all_permits() {
    let mut it = pool_client(WithoutPool::Local);
    it.call(needs(0, 0), at(0));
    it.answered(&leased(2, 2), needs(0, 0), at(0));
    it.leave();
    assert!(!it.has_returned_all(needs(0, 0)));
    let call = it.call(needs(0, 0), at(5));
    assert_eq!((call.held, call.requested, call.leaves), (0, 0, true));
    it.answered(&leased(0, 0), needs(0, 0), at(5));
    assert!(it.has_returned_all(needs(0, 0)));
    assert_eq!(it.due(needs(0, 0)), None);
    let is_due = it.due(needs(0, 1)).is_some();
    assert!(is_due, "someone still comes from a zone");
}

/// The pool may have leased them to others, and have forgotten that.
#[test]
fn permits_that_are_no_longer_withheld_are_not_claimed() {
    let claimed = |after_lease: u64| {
        let mut it = pool_client(WithoutPool::Closed);
        it.call(needs(0, 5), at(0));
        it.answered(&leased(5, 5), needs(0, 5), at(0));
        it.started(2);
        it.call(needs(2, 0), at(2350 + after_lease)).held
    };
    assert_eq!((claimed(0), claimed(73_000)), (4, 4));
    // A clock that is 2 % slow shows 73.5 s when 75 s have passed.
    assert_eq!(claimed(73_500), 2);
}

#[test]
fn a_maximum_lowered_by_backoff_is_reported_and_divided_without_the_pool() {
    let mut it = pool_client(WithoutPool::Local);
    let left = |of_all| PermitNeeds {
        maximum: Some(of_all),
        ..needs(0, 9)
    };
    assert_eq!(it.call(left(12), at(0)).lowered_maximum, Some(12));
    it.failed();
    assert_eq!(it.permit_source(), PermitSource::Alone(3));
    assert_eq!(it.call(left(2), at(50)).lowered_maximum, Some(2));
    it.failed();
    assert_eq!(it.permit_source(), PermitSource::Alone(1));
    // The configured number, or a higher one in a file that others have not read yet, is no bound.
    for all in [40, 80] {
        assert_eq!(it.call(left(all), at(100)).lowered_maximum, None);
        it.failed();
        assert_eq!(it.permit_source(), PermitSource::Alone(10));
    }
}
