//! Measures the evenness of the stream if Redis is far away, with bounds for a busy machine.

use std::time::Duration;

use crate::programs::redis::Redis;
use crate::redis::shared::relay::Relay;
use crate::support::{Gateway, Origin, best_of_three, half_alone};

use crate::redis::shared::grid::{
    Crowd, busy, check_rate, check_windows, file, pass, shared, unevenness, within,
};

/// Measures two gateways at these one-way latencies to Redis, in microseconds.
///
/// `most`: the allowed unevenness.
fn measure(away: [u64; 2], most: f64) {
    let _machine = half_alone();
    let redis = Redis::start();
    best_of_three(|attempt| {
        let origin = Origin::start();
        let gateways = away.map(|micros| {
            let relay = Relay::to(redis.address);
            relay.move_away(Duration::from_micros(micros));
            let url = format!("redis://{}/0", relay.address);
            let text = file(&origin, &url, &shared("200r/s"));
            let own = format!("timeout = \"200ms\"\nprefix = \"{attempt}:\"");
            (
                Gateway::start(&text.replace("timeout = \"200ms\"", &own)),
                relay,
            )
        });
        let crowds = [
            Crowd::of(&gateways[0].0, "/?key=a", 20),
            Crowd::of(&gateways[1].0, "/?key=b", 20),
        ];
        let span = busy(&crowds, || {
            pass(Duration::from_secs(1));
            pass(Duration::from_secs(5))
        });
        let moments = within(&origin, "key=", span);
        let uneven = unevenness(&moments);
        println!("{away:?} us away: cv {uneven:.3}");
        check_rate(&moments, span, 200.0)?;
        check_windows(&moments, 200.0, Duration::from_millis(15))?;
        let of_a = within(&origin, "key=a", span).len();
        if of_a.abs_diff(500) > 25 {
            return Err(format!("{of_a} of 1000 are of a"));
        }
        if uneven > most {
            return Err(format!("cv {uneven:.3}, not {most}"));
        }
        Ok(())
    });
}

#[test]
fn each_at_another_distance() {
    measure([100, 10_000], 0.4);
}
