use std::num::NonZeroU32;
use std::time::Duration;

use super::{Places, Terms};
use crate::{Moment, Ticket};

fn at(millis: u64) -> Moment {
    Moment::default() + Duration::from_millis(millis)
}

fn most(in_flight: u32) -> NonZeroU32 {
    NonZeroU32::new(in_flight).expect("not zero")
}

fn terms(in_flight: u32) -> Terms {
    Terms {
        in_flight: most(in_flight),
        max_wait: None,
    }
}

/// Places at which the tickets from 0 on run.
fn running(count: u64) -> Places<&'static str> {
    let mut places = Places::default();
    (0..count).for_each(|ticket| places.take(Ticket(ticket)));
    places
}

#[test]
fn a_place_is_free_until_as_many_run_as_may() {
    let places = running(2);
    assert!(places.is_free(most(3)));
    assert!(!places.is_free(most(2)));
}

#[test]
fn waiters_get_places_in_the_order_in_which_they_joined() {
    let mut places = running(2);
    places.wait(terms(2), Ticket(11), at(20), "second");
    places.wait(terms(2), Ticket(10), at(10), "first");
    assert_eq!(places.take_next(), None);
    places.free(Ticket(0));
    assert_eq!(places.take_next(), Some("first"));
    places.take(Ticket(10));
    assert_eq!(places.take_next(), None);
    places.free(Ticket(1));
    assert_eq!(places.take_next(), Some("second"));
}

#[test]
fn a_waiter_with_higher_terms_does_not_wait_behind_one_with_lower_terms() {
    let mut places = running(2);
    places.wait(terms(2), Ticket(10), at(10), "at most two");
    places.wait(terms(3), Ticket(11), at(20), "at most three");
    assert_eq!(places.take_next(), Some("at most three"));
    places.take(Ticket(11));
    places.free(Ticket(0));
    assert_eq!(places.take_next(), None, "two still run");
    places.free(Ticket(1));
    assert_eq!(places.take_next(), Some("at most two"));
}

#[test]
fn a_waiter_that_leaves_makes_room_for_those_behind_it() {
    let mut places = running(1);
    places.wait(terms(1), Ticket(10), at(10), "leaves");
    places.wait(terms(1), Ticket(11), at(20), "stays");
    assert_eq!(places.leave(Ticket(10)), Some("leaves"));
    assert_eq!(places.leave(Ticket(10)), None);
    assert_eq!(places.depth(), 1);
    places.free(Ticket(0));
    assert_eq!(places.take_next(), Some("stays"));
}

#[test]
fn a_waiter_expires_once_it_has_waited_for_max_wait() {
    let mut places = running(1);
    let brief = Terms {
        max_wait: Some(Duration::from_millis(50)),
        ..terms(1)
    };
    places.wait(terms(1), Ticket(10), at(0), "patient");
    places.wait(brief, Ticket(11), at(20), "brief");
    assert_eq!(places.expires(), Some(at(70)));
    assert_eq!(places.take_expired(at(69)), None);
    assert_eq!(places.take_expired(at(70)), Some("brief"));
    assert_eq!(places.expires(), None);
}

#[test]
fn a_place_is_freed_once() {
    let mut places = running(2);
    places.free(Ticket(0));
    places.free(Ticket(0));
    places.free(Ticket(7));
    assert_eq!(places.running(), 1);
}

#[test]
fn nothing_is_kept_once_nothing_runs_or_waits() {
    let mut places = running(1);
    places.wait(terms(1), Ticket(10), at(0), "rejected");
    assert_eq!(places.reject_all(), ["rejected"]);
    places.free(Ticket(0));
    assert!(places.0.is_none());
}

#[test]
fn a_changed_number_joins_the_lanes_that_have_become_the_same() {
    let mut places = running(2);
    places.wait(terms(1), Ticket(10), at(10), "first");
    places.wait(terms(2), Ticket(11), at(20), "second");
    places.change(&[(most(1), most(2))]);
    assert_eq!(places.take_next(), None);
    places.free(Ticket(0));
    assert_eq!(places.take_next(), Some("first"));
    assert_eq!((places.depth(), places.take_next()), (1, Some("second")));
}
