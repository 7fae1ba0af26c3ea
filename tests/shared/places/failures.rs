use std::time::Duration;

use rustix::process::Signal;

use super::*;

/// What a gateway had that is killed is withheld for `orphan`: its requests are at the origin still.
#[test]
fn what_a_killed_gateway_had_is_withheld_and_then_free() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 8\norphan = \"6s\"");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    eventually("both share", || told(&one, "gateways") == Some(2));
    busy(&[(&one, 8)], "/100", || {
        // They are at the origin for almost all of `orphan`.
        busy(&[(&other, 4)], "/5000", || {
            eventually("the other one has some", || {
                told(&other, "held").is_some_and(|own| own >= 3)
            });
            pass(300);
            other.signal(Signal::KILL);
        });
        let killed = now();
        eventually("they are withheld", || {
            told(&one, "withheld").is_some_and(|it| it >= 3)
        });
        assert!(killed.elapsed() < Duration::from_secs(6));
        eventually("they are free", || told(&one, "withheld") == Some(0));
        let took = killed.elapsed();
        assert!(took > Duration::from_secs(6), "free after {took:?}");
        eventually("and used", || app.here() == 8);
    });
    assert!(app.most() <= 8, "{} at once", app.most());
}

/// A gateway that is stopped for 10 s and goes on starts nothing on its old lease, and takes its own again.
#[test]
fn a_gateway_that_stood_still_starts_nothing_on_an_old_lease() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 6\norphan = \"20s\"");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    busy(&[(&one, 8), (&other, 8)], "/300", || {
        eventually("all are used", || app.here() == 6);
        pass(1000);
        other.signal(Signal::STOP);
        pass(10_000);
        let withheld = told(&one, "withheld").expect("a count");
        assert!((2..=4).contains(&withheld), "{withheld} are withheld");
        other.signal(Signal::CONT);
        eventually("it has its own again", || {
            told(&one, "withheld") == Some(0) && told(&one, "gateways") == Some(2)
        });
        eventually("and uses them", || app.here() == 6);
        pass(1000);
    });
    assert!(app.most() <= 6, "{} at once", app.most());
    assert!(!other.log().contains("goes on alone"), "it asks first");
}

/// Redis is killed for longer than a lease, then comes back empty, while all are busy. Closed gateways start nothing.
#[test]
fn without_redis_closed_gateways_start_nothing_once_their_leases_have_ended() {
    let _machine = half_alone();
    let (app, mut redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 6\non_store_failure = \"closed\"");
    let gateways = [0; 3].map(|_| Gateway::start(&text));
    let crowds = gateways.each_ref().map(|it| (it, 4));
    busy(&crowds, "/50", || {
        eventually("all are used", || app.here() == 6);
        redis.kill();
        pass(1000);
        assert!(app.here() > 0, "they go on with what they hold");
        pass(2500);
        assert_eq!(app.here(), 0, "the leases have ended");
        redis.restart();
        eventually("they share again", || {
            gateways.iter().all(|it| told(it, "gateways") == Some(3))
        });
        eventually("all are used again", || app.here() == 6);
        pass(1000);
    });
    assert!(app.most() <= 6, "{} at once", app.most());
}

/// `"local"`: each takes its part, at least one.
#[test]
fn without_redis_local_gateways_take_their_part() {
    let _machine = half_alone();
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

/// Nobody has vanished: Redis only does not know yet who has what, as in a new pool.
#[test]
fn places_of_which_redis_does_not_know_who_has_them_are_not_said_to_be_withheld() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let one = Gateway::start(&app.file(&redis, "max_in_flight = 6"));
    eventually("the pool is known", || {
        told(&one, "held") == Some(2) && told(&one, "unknown") == Some(0)
    });
    // A busy machine may look away for as long as Redis takes to find out.
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

/// What is flushed, and a Redis that starts anew at once, is told again by those who hold it.
#[test]
fn a_redis_that_forgets_everything_is_told_again() {
    let _machine = half_alone();
    let (app, mut redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 6\norphan = \"3s\"");
    let gateways = [0; 3].map(|_| Gateway::start(&text));
    let crowds = gateways.each_ref().map(|it| (it, 4));
    busy(&crowds, "/60", || {
        eventually("all are used", || app.here() == 6);
        for nth in 0..4 {
            if nth < 3 {
                redis.ask("FLUSHALL");
            } else {
                redis.kill();
                redis.restart();
            }
            pass(700 * (nth + 1));
            assert!(app.mean(Duration::from_millis(500)) > 2.0, "they go on");
        }
        eventually("all are used", || app.here() == 6);
    });
    assert!(app.most() <= 6, "{} at once", app.most());
}
