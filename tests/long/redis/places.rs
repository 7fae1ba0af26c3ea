//! Tests of permits of an origin that move between gateways, whatever fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::programs::redis::Redis;
use crate::redis::shared::places::{Counting, busy, pass, told};
use crate::support::{Client, Done, Gateway, best_of_three, eventually, half_alone, now};

/// Checks that permits move between gateways that outnumber them. `takes`: ms of a request.
///
/// Each gateway has one client. No request waits for longer than twice the fair time, and nearly
/// all
/// permits are used.
fn go_round(gateways: u32, most: u32, takes: u64) {
    best_of_three(|_| {
        let (app, redis) = (Counting::start(), Redis::start());
        let text = app.file(&redis, &format!("max_in_flight = {most}"));
        let all: Vec<_> = (0..gateways).map(|_| Gateway::start(&text)).collect();
        let (stop, target) = (AtomicBool::default(), format!("/{takes}"));
        let (longest, used) = thread::scope(|scope| {
            let ask = |address| {
                let (mut client, mut longest, began) =
                    (Client::connect(address), Duration::ZERO, now());
                while !stop.load(Ordering::SeqCst) {
                    let sent = now();
                    client.get(&target);
                    assert_eq!(client.answer().status, 200);
                    // At first Redis must learn the holders.
                    if began.elapsed() > Duration::from_secs(4) {
                        longest = longest.max(sent.elapsed());
                    }
                }
                longest
            };
            let clients: Vec<_> = (all.iter().map(Gateway::address))
                .map(|address| scope.spawn(move || ask(address)))
                .collect();
            let _done = Done(&stop);
            pass(4000);
            let used = app.mean(Duration::from_secs(5)) / f64::from(most);
            stop.store(true, Ordering::SeqCst);
            let clients = clients.into_iter();
            let longest = clients.map(|client| client.join().expect("a client"));
            (longest.max().expect("one"), used)
        });
        assert!(app.most() <= most as usize, "{} at once", app.most());
        let request = Duration::from_millis(takes);
        let fair = request * (gateways - most) / most;
        println!("{gateways} gateways, {most} places, {takes} ms: {longest:?}, {used:.3} used");
        // A request is served after its wait.
        if longest > fair * 2 + request || used < 0.95 {
            return Err(format!("{longest:?}, fair is {fair:?}; {used:.3} used"));
        }
        Ok(())
    });
}

#[test]
fn places_go_round_between_more_gateways_than_there_are() {
    let _machine = half_alone();
    go_round(5, 2, 200);
}

#[test]
fn one_place_goes_round_between_four_gateways() {
    let _machine = half_alone();
    go_round(4, 1, 100);
    go_round(4, 1, 50);
}

/// Permits of a killed gateway are withheld for `orphan`: its requests are still at the origin.
#[test]
fn what_a_killed_gateway_had_is_withheld_and_then_free() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 8\norphan = \"6s\"");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    eventually("both share", || told(&one, "gateways") == Some(2));
    busy(&[(&one, 8)], "/100", || {
        // The requests are at the origin for almost all of `orphan`.
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

/// A gateway that was stopped for 10 s starts nothing on its old lease, and gets a new one.
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

/// Without Redis, closed gateways start nothing once their leases have expired.
///
/// Redis is killed for longer than a lease, then returns empty, while all gateways are busy.
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

/// Gateways report their permits again after Redis was flushed or restarted.
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
