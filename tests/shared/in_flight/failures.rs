use super::*;

const LIMIT: &str = ", burst = 50, in_flight = 4";

/// Places of the first key that others have, and those of them that are withheld, as `/api` says.
fn told_of_key(gateway: &Gateway) -> (Option<u64>, Option<u64>) {
    let answer = gateway.admin("/api/zones/z/keys").expect("an admin port");
    let keys: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
    let key = &keys["keys"][0];
    (
        key["in_flight_elsewhere"].as_u64(),
        key["withheld"].as_u64(),
    )
}

/// What a gateway had that is killed is withheld for 3 s and `orphan`, and then free.
#[test]
fn what_a_killed_gateway_had_is_withheld_and_then_free() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "orphan = \"3s\"", LIMIT);
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    // They are at the origin for longer than the gateway renews its places.
    let _gone = [0; 3].map(|_| Client::ask(other.address(), "/5500?key=a"));
    eventually("three run", || app.here() == 3);
    pass(1500);
    other.signal(Signal::KILL);
    let killed = now();
    busy(&[(&one, 6)], "/50?key=a", || {
        while killed.elapsed() < Duration::from_millis(3500) {
            assert!(app.here() <= 4, "{} at once", app.here());
            pass(5);
        }
        assert!(running(&one) <= 1, "{} run", running(&one));
        eventually("what is withheld is told", || {
            told_of_key(&one) == (Some(3), Some(3))
        });
        eventually("they are free", || running(&one) == 4);
        let took = killed.elapsed();
        eventually("nothing is withheld", || {
            told_of_key(&one) == (Some(0), Some(0))
        });
        println!("free after {took:?}");
        // It may have renewed a second before.
        assert!(took > Duration::from_millis(4900), "{took:?}");
    });
    assert!(app.most() <= 4, "{} at once", app.most());
}

/// A gateway that is stopped for 10 s and goes on starts nothing on its old places, and takes its own again.
#[test]
fn a_gateway_that_stood_still_starts_nothing_on_old_places() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "orphan = \"2s\"", LIMIT);
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    busy(&[(&one, 6), (&other, 6)], "/300?key=a", || {
        eventually("all are used", || app.here() == 4);
        pass(1000);
        other.signal(Signal::STOP);
        pass(8000);
        // Its own are free by now, and others use them.
        eventually("the other one uses all", || running(&one) == 4);
        pass(2000);
        other.signal(Signal::CONT);
        eventually("it has some again", || app.here() == 4 && running(&one) < 4);
        pass(1000);
    });
    assert!(app.most() <= 4, "{} at once", app.most());
}

/// A gateway that is stopped while Redis answers it reads the answers when it goes on: Redis was never out, so nothing
/// follows `on_store_failure`.
#[test]
fn a_gateway_that_stood_still_does_not_take_redis_for_out() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "", LIMIT);
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let [_, other] = &gateways;
    // So busy that it is often stopped in the middle of a call.
    busy(&gateways.each_ref().map(|it| (it, 12)), "/2?key=a", || {
        eventually("all are used", || app.here() == 4);
        for after in [300, 310, 320, 330] {
            pass(after);
            other.signal(Signal::STOP);
            // Longer than the timeout of Redis.
            pass(2100);
            other.signal(Signal::CONT);
        }
        pass(300);
    });
    let log = other.log();
    assert!(!log.contains("the store is out"), "{log}");
    assert!(app.most() <= 4, "{} at once", app.most());
}

/// Redis is killed while all are busy, then comes back empty: closed gateways start nothing meanwhile.
#[test]
fn without_redis_closed_gateways_start_nothing_once_their_places_are_not_renewed() {
    let _machine = half_alone();
    let (app, mut redis) = (Counting::start(), Redis::start());
    let more = "orphan = \"2s\"\non_store_failure = \"closed\"";
    let text = text(&app, &redis.url(), more, LIMIT);
    let gateways = [0; 3].map(|_| Gateway::start(&text));
    let crowds = gateways.each_ref().map(|it| (it, 4));
    busy(&crowds, "/50?key=a", || {
        eventually("all are used", || app.here() == 4);
        redis.kill();
        pass(3500);
        assert_eq!(app.here(), 0, "nothing is confirmed any more");
        redis.restart();
        eventually("all are used again", || app.here() == 4);
        pass(1000);
    });
    assert!(app.most() <= 4, "{} at once", app.most());
}

/// `"local"`: each gateway runs as many as the file says, and they share again when Redis is back.
#[test]
fn without_redis_local_gateways_count_each_for_itself() {
    let _machine = half_alone();
    let (app, mut redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "", LIMIT);
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let crowds = gateways.each_ref().map(|it| (it, 10));
    busy(&crowds, "/50?key=a", || {
        eventually("all are used", || app.here() == 4);
        redis.kill();
        eventually("each has as many", || app.here() == 8);
        redis.restart();
        // They share again within two seconds.
        pass(2500);
        app.counts.most.store(0, Ordering::SeqCst);
        pass(1500);
        assert_eq!(app.most(), 4);
    });
}

/// What Redis forgets is told again within a second by all who have it.
#[test]
fn a_redis_that_forgets_everything_is_told_again() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let (one, other) = {
        let text = text(&app, &redis.url(), "", ", in_flight = 2");
        (Gateway::start(&text), Gateway::start(&text))
    };
    // One after the other: without a burst, the rate lets no two through at the same moment.
    let mut clients = [1, 2].map(|nth| {
        let client = Client::ask(one.address(), "/5000?key=a");
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
        for _ in 0..4 {
            pass(300);
            redis.ask("FLUSHALL");
        }
    });
    assert!(app.most() <= 4, "{} at once", app.most());
    eventually("nothing is counted", || {
        gateways.iter().all(|it| running(it) == 0)
    });
}

/// A Redis that stands still for 3 s and goes on does what it was asked long ago: nothing is counted for good.
#[test]
fn what_a_redis_that_stood_still_does_late_leaves_no_place_taken() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(
        &app,
        &redis.url(),
        "orphan = \"60s\"",
        ", burst = 50, in_flight = 2",
    );
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let crowds = gateways.each_ref().map(|it| (it, 4));
    busy(&crowds, "/30?key=a", || {
        eventually("all are used", || app.here() == 2);
        redis.signal(Signal::STOP);
        pass(3000);
        redis.signal(Signal::CONT);
        pass(1500);
        let used = app.mean(Duration::from_secs(1));
        assert!(used > 1.2, "{used:.2} of 2 are used");
    });
    // All is free at once, so nothing is left over.
    let mut clients = [0; 2].map(|_| Client::ask(gateways[0].address(), "/500?key=a"));
    eventually("both run", || app.here() == 2);
    assert!(clients.iter_mut().all(|it| it.answer().status == 200));
}
