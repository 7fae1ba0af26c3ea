//! Tests of the permits of a key that gateways share.

use super::*;

const KEPT: Duration = Duration::from_secs(5);

fn most(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("above zero")
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000_000 + millis * 1_000_000)
}

fn needs(running: usize, waiting: usize) -> PlacesWanted {
    PlacesWanted {
        running,
        waiting,
        coming: 0,
        most: most(4),
    }
}

fn granted(granted: usize) -> KeyPlacesReply {
    KeyPlacesReply {
        granted,
        others: 0,
        withheld: 0,
        others_wait: false,
    }
}

#[test]
fn a_place_goes_back_where_more_are_used_than_there_are() {
    let mut places = KeyPlaces::new(most(4));
    places.call(needs(4, 2), 1, KEPT, at(0)).expect("it is due");
    let reply = KeyPlacesReply {
        others: 3,
        ..granted(4)
    };
    places.answer(1, reply);
    places.freed(3);
    assert!(!places.is_free(most(4), 3, at(1)));
    let call = places.call(needs(3, 2), 2, KEPT, at(1)).expect("at once");
    assert_eq!((call.has, call.yields, call.wanted), (3, 1, 5));
}

#[test]
fn what_is_not_wanted_any_more_goes_back_at_once() {
    let mut places = KeyPlaces::new(most(4));
    places.call(needs(0, 3), 1, KEPT, at(0)).expect("it is due");
    places.answer(1, granted(3));
    // Two more are requested. Then three requests end, before the reply arrives.
    places.call(needs(3, 1), 2, KEPT, at(1)).expect("it is due");
    let call = places.call(needs(1, 0), 3, KEPT, at(1)).expect("at once");
    assert_eq!((call.has, call.wanted), (1, 1));
    places.answer(2, granted(4));
    let is_taken = !places.is_free(most(4), 1, at(2));
    assert!(is_taken, "the store may lend them to others");
    places.answer(3, granted(1));
    assert_eq!(places.calls_at(needs(1, 0)), Some(at(1000)), "it renews");
    assert_eq!(places.call(needs(1, 0), 4, KEPT, at(999)), None);
    places
        .call(needs(1, 0), 4, KEPT, at(1000))
        .expect("it renews");
    places.answer(4, granted(1));
    places
        .call(needs(0, 0), 5, KEPT, at(1100))
        .expect("at once");
    assert!(!places.is_settled(at(1101)));
    places.answer(5, granted(0));
    assert!(places.is_settled(at(1101)));
}
