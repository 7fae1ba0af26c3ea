//! Tests of shared `in_flight` while Redis fails.

use super::*;
use crate::support::night::day_or_night;

pub const LIMIT: &str = ", burst = 50, in_flight = 4";

/// With `"local"` each gateway uses the file's number alone, and shares when Redis is back.
#[test]
fn without_redis_local_gateways_count_each_for_itself() {
    let (app, mut redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "", LIMIT);
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let crowds = gateways.each_ref().map(|it| (it, 10));
    busy(&crowds, day_or_night("/100?key=a", "/50?key=a"), || {
        eventually("all are used", || app.here() == 4);
        redis.kill();
        eventually("each has as many", || app.here() == 8);
        redis.restart();
        // The gateways share again within two seconds.
        pass(2500);
        app.counts.most.store(0, Ordering::SeqCst);
        pass(1500);
        assert_eq!(app.most(), 4);
    });
}

/// All gateways report their permits again within a second after Redis has lost its data.
#[test]
fn a_redis_that_forgets_everything_is_told_again() {
    let (app, redis) = (Counting::start(), Redis::start());
    let (one, other) = {
        let text = text(&app, &redis.url(), "", ", in_flight = 2");
        (Gateway::start(&text), Gateway::start(&text))
    };
    // One after the other: without a burst, the rate admits no two requests at the same moment.
    let mut clients = [1, 2].map(|nth| {
        let client = Client::ask(one.address(), day_or_night("/2500?key=a", "/5000?key=a"));
        eventually("it runs", || app.here() == nth);
        client
    });
    redis.ask("FLUSHALL");
    pass(1500);
    assert_eq!(fetch(other.address(), "/0?key=a").status, 429);
    assert!(clients.iter_mut().all(|it| it.answer().status == 200));
    eventually("a place is free", || {
        fetch(other.address(), "/0?key=a").status == 200
    });
    assert_eq!(app.most(), 2);
    let text = self::text(&app, &redis.url(), "", ", burst = 50, in_flight = 2");
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    busy(&gateways.each_ref().map(|it| (it, 4)), "/20?key=b", || {
        for _ in 0..day_or_night(2, 4) {
            pass(300);
            redis.ask("FLUSHALL");
        }
    });
    assert!(app.most() <= 4, "{} at once", app.most());
    eventually("nothing is counted", || {
        gateways.iter().all(|it| running(it) == 0)
    });
}
