//! Tests of changes to the settings of a shared gate.

use super::{file, gauge, pass, rate_of, shared, within};
use crate::programs::redis::Redis;
use crate::redis::shared::{busy, millis, steady_rate};
use crate::support::night::day_or_night;
use crate::support::{
    Client, Gateway, Origin, assert_contains, best_of_three, eventually, gaps, quarter_alone,
};

/// The rate of the file saved last is in force at both gateways, also for waiting requests.
#[test]
fn a_new_rate_in_one_file_is_in_force_at_both() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let (origin, redis) = (Origin::start(), Redis::start());
        let text = |rate: &str| file(&origin, &redis.url(), &shared(rate));
        let [one, other] = [(); 2].map(|()| Gateway::start(&text("50r/s")));
        let crowds = [(&one, 10, "/?key=a"), (&other, 10, "/?key=b")];
        let (before, after) = busy(&crowds, &[200], || {
            pass(millis(300));
            let before = pass(millis(day_or_night(700, 1000)));
            one.site.write(&text("200r/s"));
            one.wait_for_line("the changed file is in force");
            pass(millis(200));
            (before, pass(millis(day_or_night(700, 1500))))
        });
        for (span, rate) in [(before, 50.0), (after, 200.0)] {
            let moments = within(&origin, "key=", span);
            let found = day_or_night(steady_rate(&moments, rate), rate_of(&moments, span));
            if (found / rate - 1.0).abs() > 0.03 {
                return Err(format!("{found:.1}r/s, not {rate}r/s"));
            }
        }
        let line = other.wait_for_line("another gateway that shares the origin has another rate");
        assert_contains!(line, "own=50r/s", "in_force=200r/s");
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
        let answer = gateway.ask(&format!("/?key={key}")).answer();
        assert_eq!(answer.status, 200);
    }
    let count = "EVAL return(tonumber(string.match(redis.call([[INFO]],[[clients]]),[[connected_clients:(%d+)]]))) 0";
    // Two connections of workers, and one of this test.
    eventually("there is one for each worker", || redis.ask(count) == ":3");
}

/// Changing `store` in the file while requests wait loses none of them and keeps the pace.
#[test]
fn a_gate_moves_into_redis_and_out_of_it_with_those_who_wait() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let (origin, redis) = (Origin::start(), Redis::start());
        let own = file(&origin, &redis.url(), "rate = \"20r/s\"");
        let gateway = Gateway::start(&own);
        let ask = |nth: usize| gateway.ask(&format!("/{nth}?key=a"));
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
        // 29 gaps of 50 ms. Each move takes at most one gap more, and never one less.
        if !(millis(1430)..millis(2000)).contains(&took) {
            return Err(format!("{took:?}"));
        }
        let closest = gaps(&moments).into_iter().min().expect("some");
        if closest < millis(35) {
            return Err(format!("{closest:?} between two"));
        }
        Ok(())
    });
}
