//! Tests of the permits of a key.

use super::{Permits, Terms};
use crate::Ticket;
use crate::fixtures::{at, nonzero};

fn terms(in_flight: u32) -> Terms {
    Terms {
        in_flight: nonzero(in_flight),
        max_wait: None,
    }
}

/// Returns permits with `count` running requests. Their tickets are numbered from 0 on.
fn running(count: u64) -> Permits<&'static str> {
    let mut permits = Permits::default();
    (0..count).for_each(|ticket| permits.take(Ticket(ticket)));
    permits
}

#[test]
fn nothing_is_kept_once_nothing_runs_or_waits() {
    let mut permits = running(1);
    permits.wait(terms(1), Ticket(10), at(0), "rejected");
    assert_eq!(permits.reject_all(), ["rejected"]);
    permits.free(Ticket(0));
    assert!(permits.0.is_none());
}

#[test]
fn a_changed_number_joins_the_lanes_that_have_become_the_same() {
    let mut permits = running(2);
    permits.wait(terms(1), Ticket(10), at(10), "first");
    permits.wait(terms(2), Ticket(11), at(20), "second");
    permits.change(&[(nonzero(1), nonzero(2))]);
    assert_eq!(permits.take_next(), None);
    permits.free(Ticket(0));
    assert_eq!(permits.take_next(), Some("first"));
    assert_eq!((permits.depth(), permits.take_next()), (1, Some("second")));
}
