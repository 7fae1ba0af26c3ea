//! Tests of permits of a key at several gateways, while a gateway, Redis or a cluster fails.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::programs::redis::Redis;
use crate::redis::shared::cluster_under_load::nodes::Cluster;
use crate::redis::shared::in_flight::failures::LIMIT;
use crate::redis::shared::in_flight::{running, text};
use crate::redis::shared::places::{Counting, busy, pass};
use crate::support::{Client, Gateway, best_of_three, eventually, half_alone, now};

/// Four gateways with two clients each share one permit fairly, and no request waits long.
#[test]
fn gateways_have_their_turns_at_one_place() {
    let _machine = half_alone();
    best_of_three(|_| {
        let (app, redis) = (Counting::start(), Redis::start());
        let text = text(&app, &redis.url(), "", ", burst = 50, in_flight = 1");
        let gateways = [0; 4].map(|_| Gateway::start(&text));
        let ask = |address: SocketAddr| {
            let (mut client, mut longest, mut count) =
                (Client::connect(address), Duration::ZERO, 0);
            let began = now();
            while began.elapsed() < Duration::from_secs(6) {
                let sent = now();
                client.get("/40?key=a");
                assert_eq!(client.answer().status, 200);
                longest = longest.max(sent.elapsed());
                count += 1;
            }
            (count, longest)
        };
        let of_each: Vec<(usize, Duration)> = thread::scope(|scope| {
            let clients = gateways.each_ref().map(|it| {
                let address = it.address();
                [
                    scope.spawn(move || ask(address)),
                    scope.spawn(move || ask(address)),
                ]
            });
            let clients = clients.into_iter().flatten();
            clients.map(|it| it.join().expect("a client")).collect()
        });
        println!("{of_each:?}");
        assert_eq!(app.most(), 1);
        let all: usize = of_each.iter().map(|(count, _)| count).sum();
        for (count, longest) in &of_each {
            if count * 8 < all / 2 || *longest > Duration::from_secs(2) {
                return Err(format!("{of_each:?}"));
            }
        }
        Ok(())
    });
}

/// Returns the permits of the first key at other gateways, and the withheld ones, from `/api`.
fn told_of_key(gateway: &Gateway) -> (Option<u64>, Option<u64>) {
    let answer = gateway.admin("/api/zones/z/keys").expect("an admin port");
    let keys: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
    let key = &keys["keys"][0];
    (
        key["in_flight_elsewhere"].as_u64(),
        key["withheld"].as_u64(),
    )
}

/// Permits of a killed gateway are withheld for 3 s and `orphan`, and then free.
#[test]
fn what_a_killed_gateway_had_is_withheld_and_then_free() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "orphan = \"3s\"", LIMIT);
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    // The requests are at the origin for longer than the gateway's renewal.
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
        // The gateway may have renewed its permits a second before.
        assert!(took > Duration::from_millis(4900), "{took:?}");
    });
    assert!(app.most() <= 4, "{} at once", app.most());
}

/// A gateway that was stopped for 10 s starts nothing on old permits, and gets new ones.
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
        // Its permits are free by now, and other gateways use them.
        eventually("the other one uses all", || running(&one) == 4);
        pass(2000);
        other.signal(Signal::CONT);
        eventually("it has some again", || app.here() == 4 && running(&one) < 4);
        pass(1000);
    });
    assert!(app.most() <= 4, "{} at once", app.most());
}

/// A gateway that was stopped while Redis answered does not take Redis for out.
///
/// It reads the replies when it continues, so `on_store_failure` does not apply.
#[test]
fn a_gateway_that_stood_still_does_not_take_redis_for_out() {
    let _machine = half_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "", LIMIT);
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let [_, other] = &gateways;
    // The gateway is so busy that it is often stopped in the middle of a call.
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

/// Without Redis, closed gateways start nothing once their permits are not renewed.
///
/// Redis is killed while all gateways are busy, then returns empty.
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

/// Calls that a stopped Redis executes late occupy no permit for good.
///
/// Redis is stopped for 3 s.
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
    // All permits are free at once, so nothing is left over.
    let mut clients = [0; 2].map(|_| Client::ask(gateways[0].address(), "/500?key=a"));
    eventually("both run", || app.here() == 2);
    assert!(clients.iter_mut().all(|it| it.answer().status == 200));
}

/// The permits of each key are at the node that has its slot, also while the slot moves.
#[test]
fn the_places_of_keys_are_spread_over_a_cluster_and_move_with_their_slots() {
    let _machine = half_alone();
    let (app, cluster) = (Counting::start(), Cluster::start());
    // A call for a moving slot may be refused. Then no request starts, and no gateway counts alone.
    let more = "on_store_failure = \"closed\"";
    let text = text(&app, &cluster.url(), more, ", burst = 50, in_flight = 3");
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let name = |key: &str| format!("drip:z:in_flight.1:{key}");
    let nodes: std::collections::BTreeSet<usize> = ["a", "b", "c", "d", "e", "f"]
        .iter()
        .map(|key| {
            let mut runs = Client::ask(gateways[0].address(), &format!("/1000?key={key}"));
            eventually("it runs", || app.here() == 1);
            let (_, node) = cluster.slot_of(&name(key));
            let command = format!("EXISTS {}", name(key));
            assert_eq!(cluster.nodes[node].ask::<i64>(&command), 1, "{key}");
            assert_eq!(runs.answer().status, 200);
            node
        })
        .collect();
    assert!(nodes.len() > 1, "all are at {nodes:?}");
    app.counts.most.store(0, Ordering::SeqCst);
    let (slot, from) = cluster.slot_of(&name("a"));
    busy(&gateways.each_ref().map(|it| (it, 6)), "/40?key=a", || {
        eventually("all are used", || app.here() == 3);
        cluster.move_slot(slot, from, (from + 1) % 3, || pass(500));
        eventually("all are used again", || app.here() == 3);
        // A permit that was lost in the move would be lost for good.
        eventually("three quarters are in use for a second", || {
            app.mean(Duration::from_secs(1)) > 2.2
        });
    });
    assert_eq!(app.most(), 3);
}
