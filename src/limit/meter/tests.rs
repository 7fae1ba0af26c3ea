//! Tests of the meters.

use std::time::Duration;

use super::*;

fn allow(rate: &str, capacity: u32) -> Allowance {
    Allowance {
        rate: rate.parse().unwrap(),
        capacity,
    }
}

fn meter(name: &str) -> Meter {
    let named = Algorithm::NAMED
        .into_iter()
        .find(|(known, _)| *known == name);
    let (_, algorithm) = named.expect("an algorithm");
    Meter::new(algorithm).unwrap()
}

/// Returns the instant `seconds` after the start of a fixed day.
fn at(seconds: f64) -> Moment {
    Moment::from_nanos(1_800_000_000_000_000_000) + Duration::from_secs_f64(seconds)
}

/// Returns how many of `asked` requests at one instant are accepted.
fn accepted(meter: &mut Meter, allowance: Allowance, seconds: f64, asked: u32) -> u32 {
    let passes = |_: &u32| {
        matches!(
            meter.decide(allowance, Cost::ONE, at(seconds)),
            Verdict::Pass { .. }
        )
    };
    u32::try_from((0..asked).filter(passes).count()).unwrap()
}

#[test]
fn a_token_bucket_of_3_a_minute_lets_4_through_across_a_minutes_edge() {
    let (three, mut bucket) = (allow("3r/m", 3), meter("token_bucket"));
    // The bucket is full: it accepts three at once, and no fourth.
    assert_eq!(accepted(&mut bucket, three, 50.0, 4), 3);
    // One token arrives every 20 seconds.
    assert_eq!(accepted(&mut bucket, three, 69.9, 1), 0);
    assert_eq!(accepted(&mut bucket, three, 70.0, 2), 1);
    // So it accepts four from 0:50 to 1:10, in less than half a minute: more than three in a
    // minute.
    assert_eq!(accepted(&mut bucket, three, 89.9, 1), 0);
    // When idle it fills up again, but no further.
    assert_eq!(accepted(&mut bucket, three, 400.0, 9), 3);
}

/// Returns a counter with `before` requests in one minute and `now` requests in the next.
fn counter(allowance: Allowance, before: u32, now: u32) -> Meter {
    let mut counter = meter("sliding_window_counter");
    let wide = Allowance {
        capacity: u32::MAX,
        ..allowance
    };
    assert_eq!(accepted(&mut counter, wide, 1.0, before), before);
    assert_eq!(accepted(&mut counter, wide, 60.0, now), now);
    counter
}

#[test]
fn a_counter_weighs_the_window_before_by_what_is_left_of_it() {
    let hundred = allow("100r/m", 100);
    let mut at_15_s = counter(hundred, 88, 12);
    assert!((at_15_s.excess(hundred.rate, at(75.0)).requests() - 78.0).abs() < 1e-9);
    assert_eq!(at_15_s.remaining(hundred, at(75.0)), 22);
    assert_eq!(accepted(&mut at_15_s, hundred, 75.0, 100), 22);

    let seven = allow("7r/m", 7);
    let mut at_30_percent = counter(seven, 5, 3);
    // 3 + 5 * 0.7 = 6.5; the whole part decides.
    assert!((at_30_percent.excess(seven.rate, at(78.0)).requests() - 6.0).abs() < 1e-9);
    assert_eq!(accepted(&mut at_30_percent, seven, 78.0, 2), 1);
}

#[test]
fn other_limits_of_the_same_meter_have_their_own_numbers() {
    let (few, many) = (allow("10r/m", 2), allow("10r/m", 5));
    for (_, algorithm) in Algorithm::NAMED {
        let Some(mut meter) = Meter::new(algorithm) else {
            continue;
        };
        assert_eq!(accepted(&mut meter, few, 3.0, 9), 2, "{algorithm}");
        assert_eq!(accepted(&mut meter, many, 3.0, 9), 3, "{algorithm}");
        assert_eq!(accepted(&mut meter, few, 3.0, 9), 0, "{algorithm}");
    }
}
