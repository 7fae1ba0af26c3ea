//! Tests of the permits of a key that gateways share.
//!
//! The store *grants* permits to gateways. A *call* reports to it how many permits this gateway
//! uses and requests. The *maximum* of the key is four.

use super::*;
use crate::fixtures::{at, nonzero};

/// Duration for which the store counts permits without a further call.
const KEPT: Duration = Duration::from_secs(5);

/// Returns the needs of a gateway at which no further requests may come soon (`coming`).
fn needs(running: usize, waiting: usize) -> KeyPermitNeeds {
    KeyPermitNeeds {
        running,
        waiting,
        coming: 0,
        maximum: nonzero(4),
    }
}

/// Returns a reply that grants these permits, while other gateways have none.
fn granted(granted: usize) -> KeyPermitsReply {
    KeyPermitsReply {
        granted,
        ..KeyPermitsReply::default()
    }
}

/// Makes the call `number` after `millis`, which must be due.
fn call(
    permits: &mut KeyPermits,
    needs: KeyPermitNeeds,
    number: u64,
    millis: u64,
) -> KeyPermitsCall {
    let call = permits.call(needs, number, KEPT, at(millis));
    call.expect("it is due")
}

#[test]
fn a_permit_is_returned_if_more_are_used_than_exist() {
    let mut permits = KeyPermits::new(nonzero(4));
    call(&mut permits, needs(4, 2), 1, 0);
    let reply = KeyPermitsReply {
        others: 3,
        ..granted(4)
    };
    permits.answer(1, reply);
    // One of the four requests has ended, and 3 still run. With the 3 permits of other gateways,
    // more permits were in use than the maximum. So the free one is returned (`yields`).
    permits.freed(3);
    assert!(!permits.is_free(nonzero(4), 3, at(1)));
    // 3 requests run and 2 wait, so 5 permits are requested. The store bounds what it grants.
    let call = call(&mut permits, needs(3, 2), 2, 1);
    assert_eq!((call.has, call.yields, call.requested), (3, 1, 5));
}

#[test]
fn permits_that_are_no_longer_needed_are_returned_at_once() {
    let mut permits = KeyPermits::new(nonzero(4));
    call(&mut permits, needs(0, 3), 1, 0);
    permits.answer(1, granted(3));
    // One more is requested. Then two requests end, before the reply arrives.
    call(&mut permits, needs(3, 1), 2, 1);
    let fewer = call(&mut permits, needs(1, 0), 3, 1);
    assert_eq!((fewer.has, fewer.requested), (1, 1));
    permits.answer(2, granted(4));
    let is_free = permits.is_free(nonzero(4), 1, at(2));
    assert!(!is_free, "the store may grant them to others");
    permits.answer(3, granted(1));
    assert_eq!(permits.calls_at(needs(1, 0)), Some(at(1000)), "it renews");
    assert_eq!(permits.call(needs(1, 0), 4, KEPT, at(999)), None);
    call(&mut permits, needs(1, 0), 4, 1000);
    permits.answer(4, granted(1));
    call(&mut permits, needs(0, 0), 5, 1100);
    assert!(!permits.is_settled(at(1101)));
    permits.answer(5, granted(0));
    assert!(permits.is_settled(at(1101)));
}
