//! Tests of the permits of a key that gateways share.

use super::*;

const KEPT: Duration = Duration::from_secs(5);

fn most(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("above zero")
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000_000 + millis * 1_000_000)
}

fn needs(running: usize, waiting: usize) -> KeyPermitNeeds {
    KeyPermitNeeds {
        running,
        waiting,
        coming: 0,
        maximum: most(4),
    }
}

fn granted(granted: usize) -> KeyPermitsReply {
    KeyPermitsReply {
        granted,
        others: 0,
        withheld: 0,
        others_wait: false,
    }
}

#[test]
fn a_permit_is_returned_if_more_are_used_than_exist() {
    let mut permits = KeyPermits::new(most(4));
    permits
        .call(needs(4, 2), 1, KEPT, at(0))
        .expect("it is due");
    let reply = KeyPermitsReply {
        others: 3,
        ..granted(4)
    };
    permits.answer(1, reply);
    permits.freed(3);
    assert!(!permits.is_free(most(4), 3, at(1)));
    let call = permits.call(needs(3, 2), 2, KEPT, at(1)).expect("at once");
    assert_eq!((call.has, call.yields, call.requested), (3, 1, 5));
}

#[test]
fn permits_that_are_no_longer_needed_are_returned_at_once() {
    let mut permits = KeyPermits::new(most(4));
    permits
        .call(needs(0, 3), 1, KEPT, at(0))
        .expect("it is due");
    permits.answer(1, granted(3));
    // Two more are requested. Then three requests end, before the reply arrives.
    permits
        .call(needs(3, 1), 2, KEPT, at(1))
        .expect("it is due");
    let call = permits.call(needs(1, 0), 3, KEPT, at(1)).expect("at once");
    assert_eq!((call.has, call.requested), (1, 1));
    permits.answer(2, granted(4));
    let is_taken = !permits.is_free(most(4), 1, at(2));
    assert!(is_taken, "the store may lend them to others");
    permits.answer(3, granted(1));
    assert_eq!(permits.calls_at(needs(1, 0)), Some(at(1000)), "it renews");
    assert_eq!(permits.call(needs(1, 0), 4, KEPT, at(999)), None);
    permits
        .call(needs(1, 0), 4, KEPT, at(1000))
        .expect("it renews");
    permits.answer(4, granted(1));
    permits
        .call(needs(0, 0), 5, KEPT, at(1100))
        .expect("at once");
    assert!(!permits.is_settled(at(1101)));
    permits.answer(5, granted(0));
    assert!(permits.is_settled(at(1101)));
}
