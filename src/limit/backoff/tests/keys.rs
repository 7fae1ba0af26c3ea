//! Tests of trouble by key: trouble that one key alone causes lowers nothing.
//!
//! *Trouble* is an answer that counts as a failure. A *cut* lowers the rate after trouble, and the
//! number of requests in flight after slow answers. Retry-After *pauses* all departures.
//!
//! `asks(30)` is a failed answer with `Retry-After: 30`. `NONE`, `TROUBLE` and `SLOW` are cuts:
//! none, of the rate, and of the requests in flight. `steady` is the time without growth after the
//! last cut of the rate.

use super::*;

/// Plays a window of one second with the answers of each key. Returns the cuts at its end.
fn second(origin: &mut Origin, keys: &[(u64, usize, Answer)]) -> Cuts {
    let begins = origin.millis;
    for (key, count, answer) in keys {
        for _ in 0..*count {
            let mut sent = origin.backoff.sent(1, at(begins));
            origin.backoff.set_key(&mut sent, *key);
            origin.backoff.answered(sent, *answer, at(begins + 10));
        }
    }
    origin.wait(1000).unwrap_or_default()
}

/// Returns the answers to each key: `count` of `key`, and few good ones to ten other keys.
fn with_others(key: u64, count: usize, answer: Answer) -> Vec<(u64, usize, Answer)> {
    let mut keys: Vec<_> = (1..=10).map(|key| (key, 4, GOOD)).collect();
    keys.push((key, count, answer));
    keys
}

#[test]
fn trouble_of_one_of_several_keys_cuts_nothing() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    for _ in 0..10 {
        let keys = with_others(99, 400, asks(30));
        assert_eq!(second(&mut origin, &keys), NONE);
    }
    assert_eq!(origin.rate(), "200r/s");
    assert_eq!(origin.backoff.paused_until(), None);
    // One other client with a single request is enough to separate the two keys.
    let keys = [(1, 1, GOOD), (99, 400, asks(30))];
    assert_eq!(second(&mut origin, &keys), NONE);
}

#[test]
fn trouble_of_the_only_key_or_of_several_keys_cuts() {
    let both = Cuts {
        retry_after: true,
        ..TROUBLE
    };
    let mut origin = Origin::new(limits(), "200r/s", None);
    assert_eq!(second(&mut origin, &[(99, 20, asks(30))]), both);
    let mut origin = Origin::new(limits(), "200r/s", None);
    let keys: Vec<_> = (1..=10).map(|key| (key, 2, asks(30))).collect();
    assert_eq!(second(&mut origin, &keys), both);
}

/// Two of eleven keys are 18 %, independent of the number of their answers.
///
/// A pause needs Retry-After at half of the keys.
#[test]
fn all_keys_count_equally() {
    let mut keys = with_others(99, 400, asks(30));
    keys[0].2 = asks(30);
    // Returns the cuts if `trip` is the share of trouble from which the rate is cut.
    let cut = |trip: &str, keys: &[_]| {
        let trip = trip.parse().unwrap();
        let mut origin = Origin::new(BackoffLimits { trip, ..limits() }, "200r/s", None);
        second(&mut origin, keys)
    };
    assert_eq!(cut("18%", &keys), TROUBLE);
    assert_eq!(cut("19%", &keys), NONE);
    for key in &mut keys[1..5] {
        key.2 = asks(30);
    }
    assert!(cut("18%", &keys).retry_after, "six of eleven");
}

#[test]
fn a_pause_for_the_only_key_ends_when_another_one_comes() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    second(&mut origin, &[(99, 20, asks(30))]);
    assert_eq!(origin.backoff.paused_until(), Some(at(31_000)));
    // The pause applies neither to other gateways nor to the next process.
    assert_eq!(origin.backoff.learned(at(1100)).paused, Duration::ZERO);
    let saved = origin.backoff.save(at(1100)).unwrap();
    assert_eq!(saved.paused, Duration::ZERO);
    // `waits` records that a request of the key waits, and returns whether that has ended a pause.
    // Another request of the paused key ends nothing.
    assert!(!origin.backoff.waits(99, at(1100)));
    assert!(origin.backoff.waits(1, at(1200)));
    assert_eq!(origin.backoff.paused_until(), None);
    // 5 s from the end of the pause at 1.2 s, counted from the cut at 1 s.
    assert_eq!(origin.steady(), Some(ms(5200)));
    assert!(!origin.backoff.waits(2, at(1300)), "it is over");

    let mut origin = Origin::new(limits(), "200r/s", None);
    second(&mut origin, &[(98, 20, asks(30)), (99, 20, asks(30))]);
    assert!(!origin.backoff.waits(1, at(1200)), "it is for all");
    assert_eq!(origin.backoff.paused_until(), Some(at(31_000)));
}

/// Plays a second with good answers to ten keys. Returns the cuts, and the requests without an
/// answer.
///
/// `slow_keys` get slow answers, and some of their requests none.
fn second_with_slow(origin: &mut Origin, slow_keys: &[u64]) -> (Cuts, Vec<Sent>) {
    let begins = origin.millis;
    let send_to = |origin: &mut Origin, key, count: usize| -> Vec<Sent> {
        let mut sent = Vec::new();
        for _ in 0..count {
            let mut request = origin.backoff.sent(1, at(begins));
            origin.backoff.set_key(&mut request, key);
            sent.push(request);
        }
        sent
    };
    let answer = |origin: &mut Origin, sent: Vec<Sent>, after: u64| {
        for sent in sent {
            origin.backoff.answered(sent, GOOD, at(begins + after));
        }
    };
    for key in 1..=10 {
        let sent = send_to(origin, key, 4);
        answer(origin, sent, 10);
    }
    let (mut slow, mut overdue) = (Vec::new(), Vec::new());
    for key in slow_keys {
        overdue.extend(send_to(origin, *key, 20));
        slow.extend(send_to(origin, *key, 40));
    }
    answer(origin, slow, 300);
    (origin.wait(1000).unwrap_or_default(), overdue)
}

#[test]
fn slow_answers_to_one_key_lower_no_permits() {
    let limit = |origin: &Origin| origin.backoff.max_in_flight();
    for (slow_keys, cuts) in [(&[99][..], NONE), (&[98, 99], SLOW)] {
        let mut origin = Origin::new(slow(250), "none", Some(50));
        let (found, overdue) = second_with_slow(&mut origin, slow_keys);
        assert_eq!(found, cuts, "{slow_keys:?}");
        assert_eq!(limit(&origin) == Some(50), cuts == NONE, "{slow_keys:?}");
        origin.answer_all(overdue, GOOD);
    }
    // Without other keys, the trouble counts as the origin's, with or without an answer.
    let mut origin = Origin::new(slow(250), "none", Some(50));
    let mut sent = origin.send(20);
    for sent in &mut sent {
        origin.backoff.set_key(sent, 99);
    }
    assert_eq!(origin.wait(1000), Some(SLOW));
    origin.abandon_all(sent);
}
