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
fn what_a_later_call_gives_up_is_not_used_whether_it_is_answered_or_fails() {
    for fails in [false, true] {
        let mut places = KeyPlaces::new(most(4));
        places.call(needs(0, 2), 1, KEPT, at(0)).expect("it is due");
        let others_wait = true;
        places.answer(
            1,
            KeyPlacesReply {
                others_wait,
                ..granted(2)
            },
        );
        places.call(needs(2, 2), 2, KEPT, at(1)).expect("it is due");
        // One has ended, and its place goes back.
        places.freed(1);
        let call = places.call(needs(1, 2), 3, KEPT, at(2)).expect("it is due");
        assert_eq!((call.has, call.yields), (1, 1));
        if fails {
            places.fail(3);
        }
        places.answer(2, granted(2));
        assert!(!places.is_free(most(4), 1, at(3)), "it fails: {fails}");
    }
}

#[test]
fn places_are_used_until_they_are_not_confirmed_any_more() {
    let mut places = KeyPlaces::new(most(4));
    places.call(needs(0, 2), 1, KEPT, at(0)).expect("it is due");
    assert!(!places.is_free(most(4), 0, at(1)));
    places.answer(1, granted(2));
    assert!(places.is_free(most(4), 1, at(2939)));
    assert!(!places.is_free(most(4), 1, at(2940)));
    // A lower maximum than that under which they were granted says nothing of them.
    assert!(!places.is_free(most(3), 1, at(2)));
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
    // Two more are asked for, then three have left, before the answer is here.
    places.call(needs(3, 1), 2, KEPT, at(1)).expect("it is due");
    let call = places.call(needs(1, 0), 3, KEPT, at(1)).expect("at once");
    assert_eq!((call.has, call.wanted), (1, 1));
    places.answer(2, granted(4));
    assert!(
        !places.is_free(most(4), 1, at(2)),
        "the store may lend them to others"
    );
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

#[test]
fn what_a_failed_call_may_have_taken_is_told_again_until_the_store_has_forgotten_it() {
    let mut places = KeyPlaces::new(most(4));
    places.call(needs(0, 3), 1, KEPT, at(0)).expect("it is due");
    places.fail(1);
    assert!(places.is_lost());
    assert!(!places.is_settled(at(1)));
    assert_eq!(places.calls_at(needs(0, 0)), Some(at(250)));
    let call = places
        .call(needs(0, 0), 2, KEPT, at(250))
        .expect("it is due");
    assert_eq!((call.has, call.wanted), (0, 0));
    places.fail(2);
    assert!(!places.is_settled(at(5249)));
    assert!(places.is_settled(at(5250)));
}
