//! Tests of shared permits while Redis fails.

use std::time::Duration;

use super::*;

/// With `"local"` each gateway uses its share, at least one permit.
#[test]
fn without_redis_local_gateways_take_their_part() {
    let (app, mut redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 6");
    let gateways = [0; 3].map(|_| Gateway::start(&text));
    let crowds = gateways.each_ref().map(|it| (it, 6));
    busy(&crowds, "/50", || {
        eventually("all are used", || {
            app.here() == 6 && told(&gateways[0], "gateways") == Some(3)
        });
        redis.kill();
        for gateway in &gateways {
            gateway.wait_for_line("this gateway goes on alone with 2 of 6 places");
        }
        eventually("all are used", || app.here() == 6);
        redis.restart();
        for gateway in &gateways {
            gateway.wait_for_line("the gateways share the places again");
        }
        eventually("all are used again", || app.here() == 6);
        pass(500);
    });
}

/// Permits are not reported as withheld while Redis only lacks information about holders.
///
/// No gateway has vanished. This is the state of a new pool.
#[test]
fn places_of_which_redis_does_not_know_who_has_them_are_not_said_to_be_withheld() {
    let (app, redis) = (Counting::start(), Redis::start());
    let one = Gateway::start(&app.file(&redis, "max_in_flight = 6"));
    eventually("the pool is known", || {
        told(&one, "held") == Some(2) && told(&one, "unknown") == Some(0)
    });
    // A busy machine may pause for as long as Redis needs to learn the holders.
    let mut forgot = None;
    eventually("what Redis has forgotten is unknown", || {
        if forgot.is_none_or(|at| now() - at > Duration::from_secs(4)) {
            redis.ask("FLUSHALL");
            forgot = Some(now());
        }
        assert_eq!(told(&one, "withheld"), Some(0), "nobody has vanished");
        told(&one, "unknown") == Some(4)
    });
    eventually("and free again", || {
        told(&one, "unknown") == Some(0) && told(&one, "free") == Some(4)
    });
}
