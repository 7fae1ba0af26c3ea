//! Tests of a Retry-After that the operator has configured as an order: see [`Backoff::obey`].
//!
//! A *pause* stops all departures.

use super::*;

/// Returns the rest of the pause.
fn paused(origin: &Origin) -> Option<Duration> {
    let until = origin.backoff.paused_until()?;
    Some(until.since(at(origin.millis)))
}

#[test]
fn an_order_pauses_at_once_for_all_keys_and_counts_once() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.answers(5, GOOD, 10);
    origin.backoff.obey(secs(20), at(10));
    assert_eq!(paused(&origin), Some(secs(20)));
    assert_eq!(origin.backoff.update(at(10)), Some(RETRY_AFTER));
    assert!(!origin.backoff.waits(1, at(10)), "it is for all keys");
    assert_eq!(paused(&origin), Some(secs(20)));

    // A shorter pause changes nothing, a longer one extends the current pause.
    origin.backoff.obey(secs(5), at(10));
    assert_eq!(origin.backoff.update(at(10)), None);
    origin.backoff.obey(secs(25), at(10));
    assert_eq!(origin.backoff.update(at(10)), Some(NONE));
    assert_eq!(paused(&origin), Some(secs(25)));

    origin.wait(25_100);
    assert_eq!(paused(&origin), None);
    assert_eq!(origin.rate(), "200r/s", "an order is no trouble");
    origin.backoff.obey(secs(1), at(origin.millis));
    assert_eq!(origin.wait(0), Some(RETRY_AFTER), "another pause");
}

#[test]
fn an_ordered_pause_is_bounded_by_max_pause_and_zero_is_ignored() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.backoff.obey(Duration::ZERO, at(0));
    assert_eq!((paused(&origin), origin.wait(0)), (None, None));
    origin.backoff.obey(Duration::MAX, at(0));
    assert_eq!(paused(&origin), Some(limits().max_pause));
}

#[test]
fn an_ordered_pause_extends_the_pause_of_one_key_to_all_keys() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    for _ in 0..10 {
        let mut sent = origin.backoff.sent(1, at(0));
        origin.backoff.set_key(&mut sent, 1);
        origin.backoff.answered(sent, asks(10), at(10));
    }
    origin.wait(1000);
    assert_eq!(paused(&origin), Some(secs(10)), "for the only key");
    origin.backoff.obey(secs(3), at(1000));
    assert!(!origin.backoff.waits(2, at(1000)), "another key waits, too");
    assert_eq!(paused(&origin), Some(secs(10)));
}

#[test]
fn an_ended_pause_is_not_adopted_again_from_other_gateways() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.backoff.share_as(Some(1));
    origin.backoff.obey(secs(20), at(0));
    let known = origin.backoff.learned(at(0));
    origin.backoff.end_pause(at(1000));
    assert_eq!(paused(&origin), None);
    origin.backoff.adopt(&known, at(0), at(2000));
    assert_eq!(paused(&origin), None, "it was this pause");
    origin.backoff.obey(secs(5), at(3000));
    assert_eq!(paused(&origin), Some(secs(8)), "another one");
}
