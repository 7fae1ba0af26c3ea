//! Tests that a key at several gateways has the share of one key.

use std::time::Instant;

use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, best_of_three, eventually, quarter_alone};

use super::{
    Crowd, busy, check_rate, file, gauge, millis, pass, rate_of, shared, unevenness, usual_rate,
    within,
};

type Span = (Instant, Instant);

/// Checks that each key has an equal share of the departures in a span, within `most`.
#[allow(clippy::cast_precision_loss)]
pub fn check_equal(
    origin: &Origin,
    keys: &[String],
    span: Span,
    most: f64,
) -> Result<Vec<f64>, String> {
    let count = |key: &String| within(origin, &format!("{key}&"), span).len() as f64;
    let counts: Vec<f64> = keys.iter().map(count).collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    for (key, count) in keys.iter().zip(&counts) {
        // Counting departures in a span may be off by one.
        if (count - mean).abs() > most * mean + 1.0 {
            return Err(format!("{key} has {count}, not {mean:.1}: {counts:?}"));
        }
    }
    Ok(counts)
}

pub fn target(key: &str) -> String {
    format!("/?{key}&")
}

pub fn keys(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("key={name}")).collect()
}

pub fn wait_for_all(gateways: &[Gateway]) {
    let count = u32::try_from(gateways.len()).expect("few");
    eventually("all are known", || {
        let known = |it| gauge(it, "drip_origin_gateways") == Some(count.into());
        gateways.iter().all(known)
    });
}

/// Starts clients of a key that uses two gateways, and of three keys that use one each.
pub fn four_crowds(one: &Gateway, other: &Gateway) -> [Crowd; 5] {
    [
        Crowd::of(one, &target("key=both"), 8),
        Crowd::of(other, &target("key=both"), 8),
        Crowd::of(one, &target("key=a"), 8),
        Crowd::of(one, &target("key=b"), 8),
        Crowd::of(other, &target("key=c"), 8),
    ]
}

#[test]
fn a_key_that_comes_by_two_gateways_has_the_turns_of_one() {
    let (text_rate, rate) = usual_rate();
    let _machine = quarter_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared(text_rate));
    let gateways = [Gateway::start(&text), Gateway::start(&text)];
    wait_for_all(&gateways);
    best_of_three(|_| {
        let span = busy(&four_crowds(&gateways[0], &gateways[1]), || {
            pass(millis(700));
            pass(millis(day_or_night(1500, 5000)))
        });
        let counts = check_equal(&origin, &keys(&["both", "a", "b", "c"]), span, 0.05)?;
        let moments = within(&origin, "key=", span);
        let uneven = unevenness(&moments);
        println!("{counts:?}, {:.2}r/s, {uneven:.3}", rate_of(&moments, span));
        check_rate(&moments, span, rate)
    });
}
