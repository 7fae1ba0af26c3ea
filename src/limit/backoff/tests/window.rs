//! Tests of windows (when they close, what they count), of pauses and of reloads.
//!
//! *Trouble* is an answer that counts as a failure. A *cut* lowers the rate, or the number of
//! requests in flight. The *steady* time is the time without growth after a cut of the rate.

use super::*;

#[test]
fn a_window_closes_after_a_second_with_ten_answers() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.answers(9, BAD, 10);
    assert_eq!(origin.wait(1490), None, "nine answers are too few");
    origin.answers(1, BAD, 10);
    assert_eq!(origin.wait(90), Some(TROUBLE));

    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.answers(100, BAD, 10);
    assert_eq!(origin.wait(980), None, "990 ms are too short");
    assert_eq!(origin.wait(10), Some(TROUBLE));
}

#[test]
fn a_window_closes_after_ten_seconds_with_any_answers() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.answers(1, BAD, 10);
    assert_eq!(origin.wait(9980), None);
    assert_eq!(origin.wait(10), Some(TROUBLE));
}

#[test]
fn time_in_which_nothing_is_sent_is_no_part_of_a_window() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.wait(9500);
    // 150 good answers in a second: 0.95 of them are 142.5 a second.
    origin.answers(150, GOOD, 10);
    origin.answers(50, BAD, 10);
    assert_eq!(origin.wait(480), None);
    assert_eq!(origin.wait(500), Some(TROUBLE));
    assert_eq!(origin.rate(), "142.5r/s");
}

#[test]
fn requests_sent_before_a_cut_are_ignored() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    let early = origin.send(30);
    assert_eq!(origin.second(180, 20), TROUBLE);
    let before = origin.rate();
    origin.answer_all(early, BAD);
    assert_eq!(origin.second(20, 0), NONE);
    assert_eq!(origin.rate(), before);
}

#[test]
fn good_answers_to_earlier_requests_count_as_throughput() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    let early = origin.send(60);
    origin.second(0, 40);
    assert_eq!(origin.rate(), "100r/s");
    origin.answer_all(early, GOOD);
    assert_eq!(origin.second(0, 40), TROUBLE);
    assert_eq!(origin.rate(), "57r/s");
}

#[test]
fn a_disconnected_client_counts_as_neither_good_nor_bad() {
    let mut origin = Origin::new(slow(250), "200r/s", Some(50));
    let sent = origin.send(100);
    origin.millis = 600;
    origin.abandon_all(sent);
    assert_eq!(origin.wait(10_000), None);
    assert!(!origin.backoff.may_change());
}

#[test]
fn half_of_the_answers_with_retry_after_pause_for_the_smallest() {
    let mut origin = Origin::new(limits(), "none", None);
    origin.answers(6, BAD, 10);
    origin.answers(5, asks(7), 10);
    assert_eq!(origin.wait(980), None, "five of eleven are less than half");

    let mut origin = Origin::new(limits(), "none", None);
    origin.answers(6, GOOD, 10);
    origin.answers(5, asks(20), 10);
    origin.answers(1, asks(7), 10);
    let ignored = Answer {
        trouble: false,
        ..asks(1)
    };
    let late = origin.backoff.sent(1, at(origin.millis));
    assert_eq!(origin.wait(970), Some(RETRY_AFTER));
    assert_eq!(origin.backoff.paused_until(), Some(at(8000)));
    assert_eq!(origin.backoff.lowered().paused_until, Some(at(8000)));
    origin.backoff.answered(late, ignored, at(origin.millis));
    assert_eq!(origin.wait(6900), None);
    assert_eq!(origin.wait(100), Some(NONE), "the pause is over");
    assert_eq!(origin.backoff.paused_until(), None);

    let mut origin = Origin::new(limits(), "none", None);
    origin.answers(10, asks(3600), 10);
    assert_eq!(origin.wait(990), Some(RETRY_AFTER));
    assert_eq!(origin.backoff.paused_until(), Some(at(31_000)), "max_pause");

    let mut origin = Origin::new(limits(), "none", None);
    origin.answers(10, asks(0), 10);
    assert_eq!(origin.wait(990), None, "a pause of nothing is none");
}

#[test]
fn the_steady_time_begins_after_the_pause() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.answers(100, asks(10), 10);
    let cuts = Cuts {
        trouble: true,
        ..RETRY_AFTER
    };
    assert_eq!(origin.wait(990), Some(cuts));
    assert_eq!(origin.steady(), Some(secs(15)));
    origin.wait(10_000);
    origin.clean(5);
    assert_eq!(origin.rate(), "100r/s");
    origin.clean(1);
    assert_eq!(origin.rate(), "110r/s");
}

#[test]
fn a_reload_keeps_the_shares() {
    let mut origin = Origin::new(slow(250), "200r/s", Some(40));
    origin.answers(20, GOOD, 300);
    origin.answers(20, BAD, 10);
    let both = Cuts {
        slow: true,
        ..TROUBLE
    };
    assert_eq!(origin.wait(690), Some(both));
    assert_eq!(origin.rate(), "100r/s");
    assert_eq!(origin.backoff.max_in_flight(), Some(20));
    let mut reload = |limits, rate: &str, max_in_flight| {
        let now = at(origin.millis);
        origin
            .backoff
            .set_limits(limits, rate.parse().ok(), max_in_flight, now);
        assert_eq!(origin.backoff.update(now), Some(NONE));
        let rate = origin.backoff.rate().map(|rate| rate.to_string());
        (rate.unwrap_or_default(), origin.backoff.max_in_flight())
    };
    let found = reload(slow(250), "60r/m", Some(100));
    assert_eq!(found, ("30r/m".into(), Some(50)));
    let found = reload(slow(250), "60r/m", Some(2));
    assert_eq!(found, ("30r/m".into(), Some(2)));
    let floor = "75%".parse().unwrap();
    let higher = BackoffLimits { floor, ..limits() };
    assert_eq!(reload(higher, "60r/m", None), ("45r/m".into(), None));
    assert_eq!(reload(limits(), "none", None), (String::new(), None));
    let found = reload(limits(), "10r/s", Some(1));
    assert_eq!(found, ("10r/s".into(), Some(1)));
    assert_eq!(origin.backoff.lowered(), Lowered::default());
}
