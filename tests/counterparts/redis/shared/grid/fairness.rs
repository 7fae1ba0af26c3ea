//! Tests that keys have fair shares of a rate that gateways share.

use std::time::Duration;

use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, best_of_three, quarter_alone};

use super::{Crowd, busy, check_rate, file, millis, pass, shared, within};

/// Checks that each key has its share of the rate in each of three seconds (by day one second).
pub fn check_parts(
    origin: &Origin,
    crowds: &[Crowd],
    rate: u32,
    parts: &[(&str, f64)],
) -> Result<(), String> {
    let seconds = busy(crowds, || {
        pass(millis(500));
        let seconds = 0..day_or_night(1, 3);
        seconds
            .map(|_| pass(Duration::from_secs(1)))
            .collect::<Vec<_>>()
    });
    for second in seconds.iter().copied() {
        check_rate_roughly(origin, second, rate)?;
        for (key, part) in parts {
            let seconds = (second.1 - second.0).as_secs_f64();
            let wanted = f64::from(rate) * part * seconds;
            let found = within(origin, key, second).len();
            #[allow(clippy::cast_precision_loss)]
            let off = (found as f64 - wanted).abs();
            if off > (0.06 * wanted).max(3.0) {
                return Err(format!("{key} has {found} in a second, not {wanted:.0}"));
            }
        }
    }
    let all = (seconds[0].0, seconds[seconds.len() - 1].1);
    check_rate(&within(origin, "key=", all), all, f64::from(rate))
}

fn check_rate_roughly(
    origin: &Origin,
    second: (std::time::Instant, std::time::Instant),
    rate: u32,
) -> Result<(), String> {
    let found = super::rate_of(&within(origin, "key=", second), second);
    if (found / f64::from(rate) - 1.0).abs() > 0.03 {
        return Err(format!("{found:.1}r/s in a second"));
    }
    Ok(())
}

#[test]
fn classes_have_their_parts_whichever_gateway_they_come_by() {
    let _machine = quarter_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let gate = shared("300r/s") + "\nclasses = { interactive = 4, batch = 1 }";
    let text = file(&origin, &redis.url(), &gate)
        + "\n[[routes]]\npath = \"/b/\"\norigin = \"app\"\nclass = \"batch\"\n";
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    best_of_three(|_| {
        let crowds = [
            Crowd::of(&one, "/i/?key=a", 10),
            Crowd::of(&one, "/b/?key=b", 10),
            Crowd::of(&other, "/b/?key=c", 10),
            Crowd::of(&other, "/b/?key=d", 10),
        ];
        // Each key of the batch has a third of the batch's fifth.
        let third = 0.2 / 3.0;
        let parts = [
            ("key=a", 0.8),
            ("key=b", third),
            ("key=c", third),
            ("key=d", third),
        ];
        check_parts(&origin, &crowds, 300, &parts)
    });
}
