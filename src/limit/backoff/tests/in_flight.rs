//! Tests of the limit of requests in flight: cuts and growth.
//!
//! A *permit* is the right to run one request at the origin. [`slow`] sets the time from which an
//! answer is slow. A window is one second in these tests, unless fewer than ten answers come.

use super::*;

/// Returns the effective limit.
fn limit(origin: &Origin) -> Option<usize> {
    origin.backoff.max_in_flight()
}

#[test]
fn a_cut_follows_its_formula() {
    // Configured limit, good answers and their milliseconds, slow answers, and the limit
    // afterwards.
    for (configured, good, good_took, slow_ones, after) in [
        // Half of the limit.
        (50, 0, 0, 60, 25),
        // ceil(0.8 * 0.25 s * 60 a second) = 12 fits better than half of 14.
        (14, 0, 0, 60, 12),
        (12, 0, 0, 60, 11),
        // ceil(0.8 * 0.25 * 33) = 7: half is 7 too.
        (13, 0, 0, 33, 7),
        // Good answers need 90 * 0.2 = 18 permits.
        (20, 90, 200, 20, 19),
        (36, 90, 200, 20, 22),
        (24, 100, 200, 20, 23),
        // At least two, and at most the configured number.
        (3, 0, 0, 10, 2),
        (2, 0, 0, 10, 2),
        (1, 0, 0, 10, 1),
    ] {
        let mut origin = Origin::new(slow(250), "none", Some(configured));
        origin.answers(good, GOOD, good_took);
        origin.answers(slow_ones, GOOD, 251);
        let cuts = origin.wait(1000 - origin.millis);
        assert_eq!(limit(&origin), Some(after), "{configured} {good}");
        assert_eq!(cuts, (after < configured).then_some(SLOW));
    }
}

/// A gateway with a part of the answers cuts the limit as a gateway with all answers does.
#[test]
fn a_part_of_the_answers_cuts_as_all_answers_do() {
    // Number of gateways, configured limit, good and slow answers in all, and the limit afterwards.
    for (parts, configured, good, slow_ones, after) in [
        (2, 14, 0, 60, 12),
        (5, 14, 0, 60, 12),
        (4, 50, 0, 60, 25),
        (2, 36, 90, 20, 22),
        (5, 20, 90, 20, 19),
        (5, 24, 100, 20, 23),
    ] {
        let mut origin = Origin::new(slow(250), "none", Some(configured));
        origin.backoff.share_as(Some(1));
        let part = format!("{}%", 100 / parts).parse().unwrap();
        origin.backoff.set_part(part);
        origin.answers(good / parts, GOOD, 200);
        origin.answers(slow_ones / parts, GOOD, 251);
        origin.wait(1000 - origin.millis);
        assert_eq!(limit(&origin), Some(after), "1/{parts} of {configured}");
    }
}

#[test]
fn an_answer_is_slow_only_above_the_limit_and_ten_percent_of_them_cut() {
    let mut origin = Origin::new(slow(250), "none", Some(40));
    origin.answers(91, GOOD, 250);
    origin.answers(9, GOOD, 251);
    assert_eq!(origin.wait(499), None);
    origin.answers(90, GOOD, 250);
    origin.answers(10, GOOD, 251);
    assert_eq!(origin.wait(499), Some(SLOW));
    // 90 good answers of 0.25 s need 22.5 permits. ceil(0.8 * 0.25 * 100) and half of 40 are 20.
    assert_eq!(limit(&origin), Some(23));
    let cut = origin.backoff.lowered().max_in_flight.unwrap();
    assert_eq!((cut.at, cut.answers, cut.bad), (at(2000), 100, 10));
    assert_eq!(cut.steady_until, None);
}

#[test]
fn requests_without_an_answer_count_once_they_are_past_slow() {
    let mut origin = Origin::new(slow(250), "200r/s", Some(50));
    let sent = origin.send(50);
    assert_eq!(origin.wait(1000), Some(SLOW));
    assert_eq!(limit(&origin), Some(25));
    assert_eq!(origin.rate(), "200r/s");
    // A stall does not cause further cuts: old requests are not judged again, and nothing grows.
    assert_eq!(origin.wait(60_000), None);
    origin.answer_all(sent, GOOD);
    assert_eq!(limit(&origin), Some(25));
}

#[test]
fn the_limit_grows_by_a_tenth_a_second_while_few_answers_are_slow() {
    let mut origin = Origin::new(slow(250), "none", Some(50));
    origin.answers(60, GOOD, 300);
    origin.wait(700);
    assert_eq!(limit(&origin), Some(25));
    let window = |origin: &mut Origin, slow| {
        let begins = origin.millis;
        origin.answers(100 - slow, GOOD, 100);
        origin.answers(slow, GOOD, 300);
        origin.wait(begins + 1000 - origin.millis);
        limit(origin)
    };
    assert_eq!(window(&mut origin, 6), Some(25));
    assert_eq!(window(&mut origin, 5), Some(25));
    assert_eq!(window(&mut origin, 6), Some(27), "25 * 1.01^10");
    assert!(!origin.backoff.lowered().grows);
    assert_eq!(window(&mut origin, 0), Some(27), "6 % are too many");
    assert!(origin.backoff.lowered().grows);
    for after in [30, 33, 37, 41, 45, 50, 50] {
        assert_eq!(window(&mut origin, 0), Some(after));
    }
    assert_eq!(origin.backoff.lowered(), Lowered::default());
}

#[test]
fn without_a_configured_limit_a_cut_starts_from_the_number_in_flight() {
    let mut origin = Origin::new(slow(250), "none", None);
    let sent = origin.send(30);
    assert_eq!(origin.wait(1000), Some(SLOW));
    assert_eq!(limit(&origin), Some(15));
    origin.answer_all(sent, GOOD);
    // 15 * 1.01^n reaches 30 after 70 ticks, and the limit ends.
    origin.clean(7);
    assert!(limit(&origin).is_some());
    origin.clean(2);
    assert_eq!(limit(&origin), None);
}

#[test]
fn long_answers_and_websockets_do_not_take_permits_of_new_requests() {
    let mut origin = Origin::new(slow(250), "none", Some(200));
    // 150 WebSockets are open, and 20 requests get no answer.
    for nth in 1..=20 {
        let _ = origin.backoff.sent(150 + nth, at(0));
    }
    origin.wait(1000);
    assert_eq!(limit(&origin), Some(175), "150, and half of 50");
}

#[test]
fn an_upload_is_not_slow_and_keeps_its_permit() {
    let mut origin = Origin::new(slow(250), "200r/s", Some(50));
    let mut uploads = begin_uploads(&mut origin);
    assert!(!origin.backoff.may_change(), "nothing waits for the origin");
    for _ in 0..5 {
        origin.answers(20, GOOD, 10);
        assert_eq!(origin.wait(990), None);
    }
    assert_eq!(limit(&origin), Some(50));
    // Half of the clients have sent all. Answers in time are not slow, even if the request is old.
    let mut unfinished = uploads.split_off(15);
    let ended = origin.millis;
    for mut upload in uploads {
        origin.backoff.await_client(&mut upload, false, at(ended));
        let mut time = OriginTime::NEW;
        time.uploaded(at(ended), false);
        let answer = Answer { time, ..GOOD };
        origin.backoff.answered(upload, answer, at(ended + 250));
    }
    assert_eq!(origin.wait(1000), None);
    // The other clients have sent all, too, and get no answer.
    let ended = origin.millis;
    for upload in &mut unfinished {
        origin.backoff.await_client(upload, false, at(ended));
    }
    assert_eq!(origin.wait(1000), Some(SLOW));
    origin.answer_all(unfinished, BAD);
}

/// Sends 30 requests now whose clients still have to send a part of them.
fn begin_uploads(origin: &mut Origin) -> Vec<Sent> {
    let mut uploads = origin.send(30);
    for upload in &mut uploads {
        origin.backoff.await_client(upload, true, at(origin.millis));
    }
    uploads
}

#[test]
fn uploads_keep_their_permits_after_a_cut() {
    let mut origin = Origin::new(slow(250), "none", Some(50));
    let uploads = begin_uploads(&mut origin);
    let sent: Vec<_> = (31..=50).map(|it| origin.backoff.sent(it, at(0))).collect();
    assert_eq!(origin.wait(1000), Some(SLOW));
    // Half of the twenty permits that uploads do not hold.
    assert_eq!(limit(&origin), Some(40));
    origin.abandon_all(uploads.into_iter().chain(sent));
}
