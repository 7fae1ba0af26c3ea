//! Tests of the meters: algorithms that accept or reject each request at once.

use super::*;
use crate::fixtures::{at, rate};

fn allowance(text: &str, capacity: u32) -> Allowance {
    Allowance {
        rate: rate(text),
        capacity,
    }
}

/// Returns how many of `asked` requests are accepted that come `millis` after the start of a
/// minute.
fn accepted(meter: &mut Meter, allowance: Allowance, millis: u64, asked: u32) -> u32 {
    let verdicts = (0..asked).map(|_| meter.decide(allowance, Cost::ONE, at(millis)));
    let passed = verdicts.filter(|verdict| matches!(verdict, Verdict::Pass { .. }));
    u32::try_from(passed.count()).unwrap()
}

#[test]
fn a_token_bucket_of_3_a_minute_lets_4_through_across_a_minutes_edge() {
    let three = allowance("3r/m", 3);
    let mut bucket = Meter::new(Algorithm::TokenBucket).unwrap();
    // The bucket is full: it accepts three at once, and no fourth.
    assert_eq!(accepted(&mut bucket, three, 50_000, 4), 3);
    // One token arrives every 20 seconds.
    assert_eq!(accepted(&mut bucket, three, 69_900, 1), 0);
    assert_eq!(accepted(&mut bucket, three, 70_000, 2), 1);
    // So it accepts four from 0:50 to 1:10, in less than half a minute: more than three in a
    // minute.
    assert_eq!(accepted(&mut bucket, three, 89_900, 1), 0);
    // When idle it fills up again, but no further.
    assert_eq!(accepted(&mut bucket, three, 400_000, 9), 3);
}

#[test]
fn a_counter_weighs_the_window_before_by_the_part_that_is_less_than_a_period_ago() {
    let (hundred, seven) = (allowance("100r/m", 100), allowance("7r/m", 7));
    // Requests in the first minute and in the second one, and 15 or 18 s into the second minute the
    // number that counts, and the number that is accepted.
    for (allowance, before, now, millis, counted, more) in [
        (hundred, 88, 12, 75_000, 78.0, 22),
        // 3 + 5 * 0.7 = 6.5; the whole part decides.
        (seven, 5, 3, 78_000, 6.0, 1),
    ] {
        let mut counter = Meter::new(Algorithm::SlidingWindowCounter).unwrap();
        let wide = Allowance {
            capacity: u32::MAX,
            ..allowance
        };
        assert_eq!(accepted(&mut counter, wide, 1_000, before), before);
        assert_eq!(accepted(&mut counter, wide, 60_000, now), now);
        let excess = counter.excess(allowance.rate, at(millis)).requests();
        assert!((excess - counted).abs() < 1e-9, "{excess}");
        assert_eq!(counter.remaining(allowance, at(millis)), more);
        assert_eq!(accepted(&mut counter, allowance, millis, 100), more);
    }
}

#[test]
fn other_limits_of_the_same_meter_have_their_own_numbers() {
    let (few, many) = (allowance("10r/m", 2), allowance("10r/m", 5));
    for (_, algorithm) in Algorithm::NAMED {
        let Some(mut meter) = Meter::new(algorithm) else {
            continue;
        };
        assert_eq!(accepted(&mut meter, few, 3_000, 9), 2, "{algorithm}");
        assert_eq!(accepted(&mut meter, many, 3_000, 9), 3, "{algorithm}");
        assert_eq!(accepted(&mut meter, few, 3_000, 9), 0, "{algorithm}");
    }
}
