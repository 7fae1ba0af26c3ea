//! Tests of the leaky bucket, against nginx's own arithmetic.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::Delay;
use crate::fixtures::{limit, rate};

const SECOND: u64 = 1_000_000_000;

fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

fn is_accepted(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Reject(_))
}

/// Returns the departure of a request that arrives at `start` behind `charged` others.
fn due_after(rate: Rate, charged: u64, start: Moment) -> Moment {
    let mut bucket = Bucket::new();
    bucket.decide(rate, limit(0, Delay::Above(0)), start);
    bucket.tail += i128::from(charged - 1) * rate.ticks_per_request();
    match bucket.decide(rate, limit(u32::MAX, Delay::Above(0)), start) {
        Verdict::Delay { until, .. } => until,
        other => panic!("{other:?}"),
    }
}

/// Rows: a rate, the number of requests ahead, and the exact wait in nanoseconds, rounded up.
#[test]
fn no_rate_drifts() {
    let start = at(1_700_000_000 * SECOND + 123_456_789);
    for (text, requests, nanos) in [
        ("1r/m", 1, 60 * SECOND),
        ("1r/m", 525_600, 365 * 86_400 * SECOND),
        ("3r/s", 1, 333_333_334),
        ("3r/s", 2, 666_666_667),
        ("3r/s", 3, SECOND),
        ("3r/s", 3_000_000, 1_000_000 * SECOND),
        ("1000000r/s", 1, 1_000),
        ("1000000r/s", 3_600_000_000, 3_600 * SECOND),
        ("999999r/s", 3_599_996_400, 3_600 * SECOND),
        ("5r/250ms", 20, SECOND),
        ("5r/250ms", 72_000, 3_600 * SECOND),
        ("0.5r/s", 1_800, 3_600 * SECOND),
        ("0.3r/s", 3, 10 * SECOND),
        ("1r/366d", 10, 3_660 * 86_400 * SECOND),
    ] {
        let due = due_after(rate(text), requests, start);
        assert_eq!(due.since(start), Duration::from_nanos(nanos), "{text}");
    }
}

#[test]
fn a_departure_beyond_the_last_instant_is_at_the_last_instant() {
    let due = due_after(
        rate("1r/366d"),
        u64::from(u32::MAX),
        at(1_700_000_000 * SECOND),
    );
    assert_eq!(due, at(u64::MAX));
    let due = due_after(rate("0.000000001r/366d"), 1, at(u64::MAX));
    assert_eq!(due, at(u64::MAX));
}

#[test]
fn the_extremes_do_not_overflow() {
    for text in [
        "1r/1us",
        "0.000000001r/366d",
        "999999999.999999999r/366d",
        "1000000r/s",
    ] {
        for now in [0, 1, u64::MAX] {
            let (rate, mut bucket) = (rate(text), Bucket::new());
            let unlimited = Limit {
                max_wait: Some(Duration::MAX),
                ..limit(u32::MAX, Delay::Above(u32::MAX))
            };
            assert!(is_accepted(bucket.decide(rate, unlimited, at(now))));
            bucket.tail += i128::from(u32::MAX - 1) * rate.ticks_per_request();
            assert!(is_accepted(bucket.decide(rate, unlimited, at(now))));
            assert!(!is_accepted(bucket.decide(rate, unlimited, at(now))));
            let found = bucket.remaining(rate, limit(u32::MAX, Delay::Never), at(now));
            assert_eq!(found, 0);
            let _ = bucket.drained_at(rate);
            for other in ["1r/s", "999999999.999999999r/366d", "0.000000001r/366d"] {
                let mut bucket = bucket;
                bucket.retune(rate, self::rate(other), at(now));
                let excess = bucket.excess(self::rate(other), at(now)).requests();
                let is_same = (excess / f64::from(u32::MAX) - 1.0).abs() < 1e-9;
                assert!(is_same, "{text} {other}");
            }
        }
    }
}

const RATES: [&str; 9] = [
    "1r/m",
    "3r/s",
    "7r/m",
    "10r/s",
    "0.5r/s",
    "5r/250ms",
    "1000000r/s",
    "1.000000001r/366d",
    "1r/1us",
];

fn any_limit() -> impl Strategy<Value = Limit> {
    let delay = prop_oneof![(0..12u32).prop_map(Delay::Above), Just(Delay::Never)];
    let wait = (0..8_000_000_000u64).prop_map(Duration::from_nanos);
    (0..10u32, delay, prop::option::weighted(0.3, wait)).prop_map(|(burst, delay, max_wait)| {
        Limit {
            max_wait,
            ..limit(burst, delay)
        }
    })
}

prop_compose! {
    /// Generates a bucket after some arrivals, and the instant of the last one.
    fn any_bucket()(
        rate in prop::sample::select(&RATES[..]).prop_map(rate),
        start in prop_oneof![Just(0), Just(1_700_000_000_123_456_789)],
        arrivals in prop::collection::vec((any_limit(), 0..40u64, 0..3u64), 0..30),
    ) -> (Rate, Bucket, Moment) {
        let twelfth = u64::try_from(rate.interval().as_nanos() / 12).expect("intervals fit");
        let (mut bucket, mut now) = (Bucket::new(), at(start));
        for (limit, twelfths, nanos) in arrivals {
            now = now + Duration::from_nanos(twelfth * twelfths.saturating_sub(20) + nanos);
            bucket.decide(rate, limit, now);
        }
        (rate, bucket, now)
    }
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn as_many_as_remain_are_accepted_and_the_next_one_at_the_predicted_instant(
        (rate, bucket, now) in any_bucket(),
        limit in any_limit(),
    ) {
        let mut bucket = bucket;
        let remaining = bucket.remaining(rate, limit, now);
        let one_more = bucket.accepts_at(rate, limit, remaining, now);
        for _ in 0..remaining {
            prop_assert!(is_accepted(bucket.decide(rate, limit, now)));
        }
        prop_assert!(!is_accepted(bucket.clone().decide(rate, limit, now)));
        prop_assert_eq!(bucket.accepts_at(rate, limit, 0, now), one_more);
        prop_assert!(is_accepted(bucket.clone().decide(rate, limit, one_more)));
        prop_assert!(!is_accepted(bucket.clone().decide(rate, limit, at(one_more.as_nanos() - 1))));
    }

    #[test]
    fn forgetting_a_bucket_changes_no_verdict_once_it_is_drained_and_not_a_nanosecond_earlier(
        (rate, bucket, now) in any_bucket(),
        later in prop::collection::vec((any_limit(), 0..20u64), 1..10),
    ) {
        let drained = bucket.drained_at(rate);
        let (mut kept, mut forgotten) = (bucket, Bucket::new());
        let mut when = drained.max(now);
        let twelfth = u32::try_from(rate.interval().as_nanos() / 12).unwrap_or(u32::MAX);
        for (limit, twelfths) in later {
            when = when + Duration::from_nanos(u64::from(twelfth) * twelfths);
            prop_assert_eq!(kept.decide(rate, limit, when), forgotten.decide(rate, limit, when));
            prop_assert_eq!(kept, forgotten);
        }
        if drained > now {
            let just_before = at(drained.as_nanos() - 1);
            let (mut kept, mut forgotten) = (bucket, Bucket::new());
            prop_assert!(!is_accepted(kept.decide(rate, limit(0, Delay::Never), just_before)));
            prop_assert!(is_accepted(forgotten.decide(rate, limit(0, Delay::Never), just_before)));
        }
    }

    #[test]
    fn distances_of_whole_requests_stay_whole_through_any_retune(
        (from, bucket, now) in any_bucket(),
        to in prop::sample::select(&RATES[..]).prop_map(rate),
        requests in 0..5_000_000_000i128,
    ) {
        prop_assume!(bucket != Bucket::new());
        let near = rescale(bucket.tail, from, to, now);
        let far = rescale(bucket.tail + requests * from.ticks_per_request(), from, to, now);
        prop_assert_eq!(far - near, requests * to.ticks_per_request());
    }
}

/// Model of nginx: levels in thousandths of a request, time in milliseconds.
#[derive(Default)]
struct Nginx {
    /// Excess after the last accepted request, and its instant.
    state: Option<(i64, i64)>,
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Passed,
    /// Waits for these milliseconds.
    Delayed(i64),
    Rejected,
}

impl Nginx {
    /// Decides as `ngx_http_limit_req_lookup` and `ngx_http_limit_req_account` do.
    ///
    /// `rate` is in thousandths of a request per second.
    fn decide(&mut self, rate: i64, limit: Limit, now: i64) -> Outcome {
        let excess = self.state.map_or(0, |(excess, last)| {
            (excess - rate * (now - last) / 1000 + 1000).max(0)
        });
        if excess > i64::from(limit.burst) * 1000 {
            return Outcome::Rejected;
        }
        self.state = Some((excess, now));
        match limit.delay {
            Delay::Above(free) if excess > i64::from(free) * 1000 => {
                Outcome::Delayed((excess - i64::from(free) * 1000) * 1000 / rate)
            }
            _ => Outcome::Passed,
        }
    }
}

proptest! {
    #![proptest_config(testing::cases(256, 8000))]

    /// With these rates and steps nginx's divisions leave no remainder, so nginx rounds nothing.
    ///
    /// A rate is also given in thousandths of a request per second. Requests arrive at multiples of
    /// `step` milliseconds.
    #[test]
    fn the_verdicts_are_nginxs_where_it_does_not_round(
        (text, thousandths, step) in prop::sample::select(vec![
            ("1r/s", 1_000, 1),
            ("2r/s", 2_000, 1),
            ("4r/s", 4_000, 1),
            ("8r/s", 8_000, 1),
            ("10r/s", 10_000, 1),
            ("25r/s", 25_000, 1),
            ("100r/s", 100_000, 1),
            ("500r/s", 500_000, 1),
            ("1000r/s", 1_000_000, 1),
            ("60r/m", 1_000, 1),
            ("30r/m", 500, 2),
            ("15r/m", 250, 4),
            ("7.5r/m", 125, 8),
            ("5r/250ms", 20_000, 1),
        ]),
        burst in 0..12u32,
        delay in prop_oneof![(0..14u32).prop_map(Delay::Above), Just(Delay::Never)],
        gaps in prop::collection::vec(
            prop_oneof![4 => Just(0.0), 4 => 0.0..2.0f64, 1 => 2.0..30.0f64],
            1..120,
        ),
    ) {
        let (rate, limit) = (rate(text), limit(burst, delay));
        let (mut nginx, mut bucket) = (Nginx::default(), Bucket::new());
        let mut now = 1_700_000_000_000 / step;
        for gap in gaps {
            #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
            let steps = (gap * 1_000_000.0 / (thousandths * step) as f64) as i64;
            now += steps;
            let millis = now * step;
            let moment = at(u64::try_from(millis).expect("after the epoch") * 1_000_000);
            let ours = match bucket.decide(rate, limit, moment) {
                Verdict::Pass { .. } => Outcome::Passed,
                Verdict::Delay { until, .. } => {
                    let wait = until.since(moment);
                    prop_assert_eq!(wait.subsec_nanos() % 1_000_000, 0);
                    Outcome::Delayed(i64::try_from(wait.as_millis()).expect("short"))
                }
                Verdict::Reject(_) => Outcome::Rejected,
            };
            prop_assert_eq!(ours, nginx.decide(thousandths, limit, millis));
        }
    }
}
