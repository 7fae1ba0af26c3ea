use std::time::Duration;

use crate::support::redis::Redis;
use crate::support::{Gateway, Origin, best_of_three, half_alone};

use super::{Crowd, busy, check_rate, file, millis, pass, shared, within};

/// Counts the requests of each key in each of three seconds; each must have its part of the rate.
fn check_parts(
    origin: &Origin,
    crowds: &[Crowd],
    rate: u32,
    parts: &[(&str, f64)],
) -> Result<(), String> {
    let seconds = busy(crowds, || {
        pass(millis(500));
        [(); 3].map(|()| pass(Duration::from_secs(1)))
    });
    for second in seconds {
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
    let all = (seconds[0].0, seconds[2].1);
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
fn keys_that_come_in_by_different_gateways_get_equal_parts_in_each_second() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("300r/s"));
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    best_of_three(|_| {
        let keys = ["key=a", "key=b", "key=c", "key=d", "key=e"];
        let target = |key: &&str| Crowd::of(&one, &format!("/?{key}"), 4);
        let mut crowds: Vec<Crowd> = keys.iter().map(target).collect();
        crowds.push(Crowd::of(&other, "/?key=f", 12));
        let parts: Vec<_> = keys.iter().map(|key| (*key, 1.0 / 6.0)).collect();
        let parts = [&parts[..], &[("key=f", 1.0 / 6.0)]].concat();
        check_parts(&origin, &crowds, 300, &parts)
    });
}

#[test]
fn weights_of_keys_count_over_all_gateways() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("200r/s"));
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    best_of_three(|_| {
        let crowds = [
            Crowd::of(&one, "/?key=gold", 10),
            Crowd::of(&one, "/?key=a", 10),
            Crowd::of(&other, "/?key=b", 10),
        ];
        let parts = [("key=gold", 0.6), ("key=a", 0.2), ("key=b", 0.2)];
        check_parts(&origin, &crowds, 200, &parts)
    });
}

#[test]
fn classes_have_their_parts_whichever_gateway_they_come_by() {
    let _machine = half_alone();
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
        // Of the batch's fifth, each of its keys has a third.
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

/// Without fair keys all are one queue: who has more that wait gets more.
#[test]
fn without_keys_gateways_share_by_what_waits_at_each() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("200r/s")).replace("share = \"key\"", "");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    best_of_three(|_| {
        let crowds = [
            Crowd::of(&one, "/?key=a", 30),
            Crowd::of(&other, "/?key=b", 10),
        ];
        check_parts(&origin, &crowds, 200, &[("key=a", 0.75), ("key=b", 0.25)])
    });
}
