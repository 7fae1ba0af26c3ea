use std::time::Duration;

use crate::support::redis::Redis;
use crate::support::{Client, Gateway, Origin, best_of_three, eventually, half_alone};

use super::{Crowd, busy, file, gauge, millis, pass, rate_of, shared, within};

/// The file that was saved last decides for all, with requests waiting.
#[test]
fn a_new_rate_in_one_file_is_in_force_at_both() {
    let _machine = half_alone();
    best_of_three(|_| {
        let (origin, redis) = (Origin::start(), Redis::start());
        let text = |rate: &str| file(&origin, &redis.url(), &shared(rate));
        let (one, other) = (
            Gateway::start(&text("50r/s")),
            Gateway::start(&text("50r/s")),
        );
        let crowds = [
            Crowd::of(&one, "/?key=a", 10),
            Crowd::of(&other, "/?key=b", 10),
        ];
        let (before, after) = busy(&crowds, || {
            pass(millis(300));
            let before = pass(millis(1000));
            one.site.write(&text("200r/s"));
            one.wait_for_line("the changed file is in force");
            pass(millis(200));
            (before, pass(millis(1500)))
        });
        for (span, rate) in [(before, 50.0), (after, 200.0)] {
            let found = rate_of(&within(&origin, "key=", span), span);
            if (found / rate - 1.0).abs() > 0.03 {
                return Err(format!("{found:.1}r/s, not {rate}r/s"));
            }
        }
        let line = other.wait_for_line("another gateway that shares the origin has another rate");
        assert!(
            line.contains("own=50r/s") && line.contains("in_force=200r/s"),
            "{line}"
        );
        other.site.write(&text("200r/s"));
        other.wait_for_line("the changed file is in force");
        Ok(())
    });
}

/// Zones and gates of a worker use one connection.
#[test]
fn each_worker_has_one_connection_to_redis() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let zone = "rate = \"100r/s\"\nstore = \"redis\"";
    let text = file(&origin, &redis.url(), &shared("100r/s")).replace("rate = \"none\"", zone);
    let gateway = Gateway::start(&(text + "limits = [{ zone = \"key\" }]\n"));
    eventually("it shares", || {
        gauge(&gateway, "drip_origin_shared") == Some(1.0)
    });
    for key in 0..20 {
        let answer = Client::ask(gateway.address(), &format!("/?key={key}")).answer();
        assert_eq!(answer.status, 200);
    }
    let count = "EVAL return(tonumber(string.match(redis.call([[INFO]],[[clients]]),[[connected_clients:(%d+)]]))) 0";
    // Those of two workers, and that of who asks.
    eventually("there is one for each worker", || redis.ask(count) == ":3");
}

/// `store` changes in the file while requests wait: none is lost, and the pace is kept.
#[test]
fn a_gate_moves_into_redis_and_out_of_it_with_those_who_wait() {
    let _machine = half_alone();
    best_of_three(|_| {
        let (origin, redis) = (Origin::start(), Redis::start());
        let own = file(&origin, &redis.url(), "rate = \"20r/s\"");
        let gateway = Gateway::start(&own);
        let ask = |nth: usize| Client::ask(gateway.address(), &format!("/{nth}?key=a"));
        let mut clients: Vec<Client> = (0..30).map(ask).collect();
        assert_eq!(gauge(&gateway, "drip_origin_shared"), None);
        origin.wait_for(5);
        let shared = file(&origin, &redis.url(), &shared("20r/s"));
        gateway.site.write(&shared);
        gateway.wait_for_line("the changed file is in force");
        eventually("it shares", || {
            gauge(&gateway, "drip_origin_shared") == Some(1.0)
        });
        origin.wait_for(18);
        gateway.site.write(&own);
        eventually("it shares no more", || {
            gauge(&gateway, "drip_origin_shared").is_none()
        });
        for client in &mut clients {
            assert_eq!(client.answer().status, 200);
        }
        let moments = origin.moments("key=a");
        assert_eq!(moments.len(), 30);
        let took = moments[29] - moments[0];
        // 29 gaps of 50 ms. Each move takes at most a gap more, and never one less.
        if !(millis(1430)..millis(2000)).contains(&took) {
            return Err(format!("{took:?}"));
        }
        let pairs = moments.windows(2).map(|pair| pair[1] - pair[0]);
        let closest = pairs.min().expect("some");
        if closest < millis(35) {
            return Err(format!("{closest:?} between two"));
        }
        Ok(())
    });
}

/// One gateway's requests are in trouble: it backs off, and the other one gets what it leaves.
#[test]
fn who_backs_off_leaves_its_turns_to_the_others() {
    let _machine = half_alone();
    best_of_three(|_| {
        let origin = Origin::answering(|exchange| {
            if exchange.target().contains("bad") {
                return exchange.send(b"HTTP/1.1 503 Unavailable\r\ncontent-length: 0\r\n\r\n");
            }
            exchange.reply(b"good")
        });
        let redis = Redis::start();
        let text = file(&origin, &redis.url(), &shared("200r/s"));
        let backoff = "\n[origins.app.backoff]\nfloor = \"10%\"\n";
        let (bad, good) = (
            Gateway::start(&(text.clone() + backoff)),
            Gateway::start(&text),
        );
        let crowds = [
            Crowd::of(&bad, "/bad?key=a", 20).answered(503),
            Crowd::of(&good, "/good?key=b", 20),
        ];
        let span = busy(&crowds, || {
            eventually("its rate is lowered far", || {
                let labels = [("origin", "app"), ("of", "now")];
                let now = bad.metrics().value("drip_origin_rate", &labels);
                now.is_some_and(|now| now <= 50.0)
            });
            pass(millis(100));
            pass(millis(1000))
        });
        let of = |key| rate_of(&within(&origin, key, span), span);
        let (bad, good) = (of("key=a"), of("key=b"));
        // At most a quarter of its half, and less from cut to cut.
        if !(8.0..=27.0).contains(&bad) {
            return Err(format!("{bad:.1}r/s while backing off"));
        }
        if (bad + good - 200.0).abs() > 4.0 {
            return Err(format!("{bad:.1}r/s and {good:.1}r/s"));
        }
        Ok(())
    });
}

/// A gate that is shared keeps its queues for itself, and shares its places.
#[test]
fn queues_are_each_gateways_own_and_places_are_not() {
    let origin = Origin::answering(|exchange| {
        std::thread::sleep(Duration::from_millis(100));
        exchange.reply(b"late")
    });
    let redis = Redis::start();
    let gate = shared("1000r/s") + "\nmax_in_flight = 4\nqueue = 8";
    let text = file(&origin, &redis.url(), &gate);
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    let crowds = [
        Crowd::of(&one, "/?key=a", 8),
        Crowd::of(&other, "/?key=b", 8),
    ];
    let span = busy(&crowds, || {
        // At first it is found out who holds which places.
        pass(millis(3000));
        pass(millis(2000))
    });
    let found = ["key=a", "key=b"].map(|key| rate_of(&within(&origin, key, span), span));
    let all = found[0] + found[1];
    // Four at a time, each for a tenth of a second; a slot takes a round trip to Redis.
    assert!(all <= 41.0 && all > 28.0, "{found:?}r/s");
    assert!(found.into_iter().all(|it| it > 12.0), "{found:?}r/s");
}
