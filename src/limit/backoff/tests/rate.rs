//! Tests of the rate: cuts, the *steady* time without growth after them, and growth.
//!
//! A cut follows a window (here a second) with trouble, from 10 % of the answers on. The *point of
//! trouble* is the rate that the origin answered well when it was last in trouble.

use super::*;

#[test]
fn a_cut_leaves_95_percent_of_the_good_answers_between_half_and_nine_tenths() {
    // Good and bad answers in a second, and the rate afterwards.
    for (good, bad, after) in [
        (150, 20, "142.5r/s"),
        (180, 20, "171r/s"),
        // At most 0.9 of the rate before the cut.
        (198, 22, "180r/s"),
        // At least half of the rate before the cut.
        (60, 90, "100r/s"),
        (0, 10, "100r/s"),
    ] {
        let mut origin = Origin::new(limits(), "200r/s", None);
        assert_eq!(origin.second(good, bad), TROUBLE);
        assert_eq!(origin.rate(), after, "{good} good, {bad} bad");
        assert_eq!(origin.steady(), Some(secs(5)));
        let (share, cut) = origin.backoff.lowered().rate.unwrap();
        assert_eq!(origin.backoff.rate(), Some(rate("200r/s").scaled(share)));
        let (all, bad) = ((good + bad) as u64, bad as u64);
        assert_eq!((cut.at, cut.answers, cut.bad), (at(1000), all, bad));
    }
}

#[test]
fn less_trouble_than_the_trip_does_not_cut() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    assert_eq!(origin.second(91, 9), NONE);
    assert_eq!(origin.rate(), "200r/s");
    assert_eq!(origin.second(90, 10), TROUBLE);
}

#[test]
fn the_rate_is_never_cut_below_the_floor() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    let mut rates = Vec::new();
    for _ in 0..5 {
        origin.second(0, 10);
        rates.push(origin.rate());
    }
    assert_eq!(rates, ["100r/s", "50r/s", "25r/s", "20r/s", "20r/s"]);
    assert_eq!(origin.second(0, 10), NONE, "no event: it cannot be lower");
    assert_eq!(origin.steady(), Some(secs(5)), "but it stays");
}

#[test]
fn good_answers_count_what_the_gate_charged_for_them() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    // 30 answers of cost 5 a second: 0.95 * 150.
    origin.answers(30, Answer { cost: 5, ..GOOD }, 10);
    origin.answers(10, BAD, 10);
    origin.wait(980);
    assert_eq!(origin.rate(), "142.5r/s");
}

#[test]
fn some_trouble_in_two_windows_cuts_the_rate_a_little_without_a_steady_time() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    assert_eq!(origin.second(19, 1), NONE);
    assert_eq!(origin.second(20, 0), NONE);
    assert_eq!(origin.second(19, 1), NONE, "not in a row");
    assert_eq!(origin.second(91, 9), TROUBLE);
    assert_eq!((origin.rate(), origin.steady()), ("190r/s".into(), None));
    assert_eq!(origin.second(19, 1), NONE, "two windows again");
    assert_eq!(origin.second(19, 1), TROUBLE);
    assert_eq!(origin.rate(), "180.5r/s");
    origin.clean(1);
    assert_eq!(origin.rate(), "180.5r/s");
    origin.clean(1);
    assert_eq!(origin.rate(), "190.5r/s", "it grows at once");
}

#[test]
fn the_rate_grows_after_the_steady_time_and_slowly_near_the_point_of_trouble() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.second(60, 90);
    origin.second(60, 40);
    assert_eq!(origin.rate(), "57r/s");
    origin.clean(5);
    assert_eq!(origin.rate(), "57r/s");
    // 1 % of 200 a second up to 1.15 * 60 = 69, and 5 % from there.
    origin.clean(1);
    assert_eq!(origin.rate(), "59r/s");
    origin.clean(5);
    assert_eq!(origin.rate(), "69r/s");
    origin.wait(100);
    assert_eq!(origin.rate(), "69.2r/s");
    origin.wait(100);
    assert_eq!(origin.rate(), "70.2r/s");
    origin.wait(800);
    assert_eq!(origin.rate(), "78.2r/s");
    origin.clean(12);
    assert_eq!(origin.rate(), "198.2r/s");
    origin.clean(2);
    assert_eq!(origin.backoff.rate(), Some(rate("200r/s")));
    assert_eq!(origin.backoff.lowered(), Lowered::default());
}

#[test]
fn the_rate_grows_only_after_a_window_without_trouble() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.second(0, 100);
    origin.answers(9, GOOD, 10);
    origin.wait(8990);
    assert_eq!(origin.rate(), "100r/s", "no window has closed");
    origin.wait(1000);
    origin.wait(1000);
    assert_eq!(origin.rate(), "110r/s");
    origin.second(19, 1);
    origin.clean(1);
    // Some trouble stops growth for a window.
    assert_eq!(origin.rate(), "120r/s");
}

#[test]
fn the_rate_grows_while_idle_but_not_while_an_answer_is_missing() {
    let mut idle = Origin::new(limits(), "200r/s", None);
    idle.second(0, 100);
    idle.wait(11_000);
    assert_eq!(idle.rate(), "110r/s");
    let mut silent = Origin::new(limits(), "200r/s", None);
    silent.second(0, 100);
    let _sent = silent.backoff.sent(1, at(silent.millis));
    silent.wait(60_000);
    assert_eq!(silent.rate(), "100r/s");
}

/// Lets the rate grow to 69 r/s, then cuts it to 57 r/s.
fn cut_again(origin: &mut Origin) {
    for _ in 0..60 {
        if origin.rate() != "69r/s" {
            origin.clean(1);
        }
    }
    assert_eq!(origin.second(60, 10), TROUBLE);
    assert_eq!(origin.rate(), "57r/s");
}

#[test]
fn the_steady_time_doubles_when_the_same_point_is_met_again() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.second(60, 90);
    origin.second(60, 40);
    for steady in [10, 20, 30, 30] {
        cut_again(&mut origin);
        assert_eq!(origin.steady(), Some(secs(steady)));
    }
    // Trouble without growth in between: the time starts again, and is not doubled.
    origin.second(57, 10);
    assert_eq!(origin.steady(), Some(secs(30)));
    // At another point of trouble the time is short again.
    origin.second(40, 10);
    assert_eq!(origin.steady(), Some(secs(5)));
}

#[test]
fn an_outage_does_not_change_the_point_of_trouble() {
    let mut origin = Origin::new(limits(), "200r/s", None);
    origin.second(60, 90);
    origin.second(60, 40);
    origin.clean(11);
    origin.second(0, 50);
    assert_eq!(origin.rate(), "39.1r/s");
    origin.clean(8);
    assert_eq!(origin.second(60, 10), TROUBLE);
    assert_eq!(origin.steady(), Some(secs(10)));
}

#[test]
fn a_point_of_trouble_is_forgotten_after_a_long_time_at_the_whole_rate() {
    for (seconds, steady) in [(20, 10), (40, 5)] {
        let mut origin = Origin::new(limits(), "200r/s", None);
        origin.second(180, 20);
        assert_eq!(origin.rate(), "171r/s");
        while origin.backoff.lowered().rate.is_some() {
            origin.clean(1);
        }
        origin.clean(seconds);
        origin.second(180, 20);
        assert_eq!(origin.steady(), Some(secs(steady)), "{seconds} s");
    }
}
