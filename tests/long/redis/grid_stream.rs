//! Tests of a gateway that joins another one and leaves it.

use crate::programs::redis::Redis;
use crate::redis::shared::grid::{
    Crowd, busy, check_rate, file, gauge, millis, pass, shared, within,
};
use crate::support::{Gateway, Origin, best_of_three, eventually, half_alone, now};

/// An idle gateway leaves the whole rate to the other one, and gets its share on return.
#[test]
fn one_alone_gets_everything_and_one_who_comes_gets_its_part_at_once() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("200r/s"));
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    eventually("both are known", || {
        gauge(&one, "drip_origin_gateways") == Some(2.0)
    });
    best_of_three(|_| {
        let at_one = [Crowd::of(&one, "/?key=a", 20)];
        let at_other = [Crowd::of(&other, "/?key=b", 20)];
        busy(&at_one, || {
            pass(millis(200));
            let alone = pass(millis(1500));
            check_rate(&within(&origin, "key=a", alone), alone, 200.0)?;
            let began = now();
            let (second, both) = busy(&at_other, || (pass(millis(100)), pass(millis(1500))));
            let first = within(&origin, "key=b", (began, second.1));
            if first.len() < 3 {
                return Err(format!("{} of b in the first 100 ms", first.len()));
            }
            check_rate(&within(&origin, "key=", both), both, 200.0)?;
            let of_b = within(&origin, "key=b", both).len();
            if of_b.abs_diff(150) > 8 {
                return Err(format!("{of_b} of 300 are of b"));
            }
            // Within two spans the gateway has the whole rate again. Its last requests may wait
            // that long.
            pass(millis(250));
            let again = pass(millis(1000));
            check_rate(&within(&origin, "key=a", again), again, 200.0)
        })
    });
}
