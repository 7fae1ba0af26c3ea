//! Tests of busy gateways that take leases of a key.

use std::sync::atomic::Ordering;
use std::thread;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::redis::shared::leases::{
    RATE, Sent, arrived, check_all_spans, leased, number, text, under_load,
};
use crate::redis::shared::relay::Relay;
use crate::support::{Client, Gateway, MS, Origin, best_of_three, half_alone, now};

/// Returns the number of script calls so far.
fn calls(redis: &Redis) -> usize {
    let client = redis::Client::open(redis.url()).expect("a client");
    let mut connection = client.get_connection().expect("a connection");
    let info = redis::cmd("INFO")
        .arg("commandstats")
        .query(&mut connection);
    let info: String = info.expect("an answer");
    let of = |line: &str| {
        let calls = line.strip_prefix("cmdstat_evalsha:calls=")?;
        calls.split(',').next()?.parse::<usize>().ok()
    };
    info.lines().find_map(of).unwrap_or(0)
}

/// Runs three busy gateways. Returns the number of Redis calls per request.
fn calls_a_request(lease: &str) -> Result<f64, String> {
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = text(&origin, &redis, lease, "");
    let gateways = [(); 3].map(|()| Gateway::start(&text));
    let all: Vec<&Gateway> = gateways.iter().collect();
    let (sent, mut seen) = (Sent::default(), None);
    under_load(&all, &sent, |_| {
        thread::sleep(500 * MS);
        let began = (now(), calls(&redis), sent.next.load(Ordering::SeqCst));
        thread::sleep(4000 * MS);
        let ended = (now(), calls(&redis), sent.next.load(Ordering::SeqCst));
        seen = Some((began, ended));
    });
    check_all_spans(&origin, &sent);
    assert_eq!(sent.others.load(Ordering::SeqCst), 0);
    let ((from, calls_before, sent_before), (until, calls, sent)) = seen.expect("it ran");
    let shares = [0, 1, 2].map(|nth| arrived(&origin, nth, from, until));
    let (all, seconds) = (shares.iter().sum::<usize>(), (until - from).as_secs_f64());
    #[allow(clippy::cast_precision_loss)]
    let (reached, wanted) = (all as f64, RATE as f64 * seconds);
    if reached < 0.97 * wanted {
        return Err(format!("{reached} of {wanted}"));
    }
    for second in 0..4 {
        let from = from + 1000 * second * MS;
        let shares = [0, 1, 2].map(|nth| arrived(&origin, nth, from, from + 1000 * MS));
        let all: usize = shares.iter().sum();
        if shares.iter().any(|share| share * 6 < all) {
            return Err(format!("not all have their part of a second: {shares:?}"));
        }
    }
    #[allow(clippy::cast_precision_loss)]
    Ok((calls - calls_before) as f64 / (sent - sent_before) as f64)
}

/// Three busy gateways with leases keep the limit, reach the rate, and seldom call Redis.
///
/// Each span has at most its rate and the burst, and each gateway has its share of each second.
#[test]
fn three_busy_gateways_keep_the_limit_and_ask_redis_seldom() {
    let _machine = half_alone();
    best_of_three(|_| {
        let with = calls_a_request("100ms")?;
        let without = calls_a_request("0s")?;
        if with * 5.0 > without {
            return Err(format!("{with:.3} calls a request, {without:.3} without"));
        }
        Ok(())
    });
}

/// The third gateway gets the whole rate within the duration of a lease.
///
/// The load of one gateway stops, and another gateway is killed.
#[test]
fn what_others_leave_a_gateway_has_soon() {
    let _machine = half_alone();
    best_of_three(|_| {
        let (origin, redis) = (Origin::start(), Redis::start());
        let text = text(&origin, &redis, "100ms", "");
        let gateways = [(); 3].map(|()| Gateway::start(&text));
        let all: Vec<&Gateway> = gateways.iter().collect();
        let (sent, mut span) = (Sent::default(), None);
        under_load(&all, &sent, |ends| {
            thread::sleep(1000 * MS);
            ends[0].store(true, Ordering::SeqCst);
            ends[1].store(true, Ordering::SeqCst);
            gateways[1].signal(rustix::process::Signal::KILL);
            thread::sleep(200 * MS);
            let from = now();
            thread::sleep(2000 * MS);
            span = Some((from, now()));
        });
        check_all_spans(&origin, &sent);
        let (from, until) = span.expect("it ran");
        let count = arrived(&origin, 2, from, until);
        #[allow(clippy::cast_precision_loss)]
        let wanted = RATE as f64 * (until - from).as_secs_f64();
        #[allow(clippy::cast_precision_loss)]
        if (count as f64) < 0.97 * wanted {
            return Err(format!("{count} of {wanted}"));
        }
        Ok(())
    });
}

/// Requests in a queue depart in order, although a lease decides most of them.
///
/// Other requests arrive while a call to Redis is under way.
#[test]
fn who_came_first_to_a_gateway_leaves_first() {
    let _machine = half_alone();
    best_of_three(|_| {
        let (origin, redis) = (Origin::start(), Redis::start());
        // Ten requests arrive while Redis is called.
        let relay = Relay::to(redis.address);
        relay.slow_down(20 * MS);
        let url = format!("redis://{}/0", relay.address);
        let more = "lease = \"200ms\"";
        let text = file(&origin, &url, "300r/s", more, ", burst = 2000");
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        let ask = |gateway: &Gateway, nth: usize| {
            let mut clients = Vec::new();
            for number in 0..600 {
                let target = format!("/?key=a&gateway={nth}&number={number}");
                clients.push(Client::ask(gateway.address(), &target));
                thread::sleep(4 * MS);
            }
            for client in &mut clients {
                assert_eq!(client.answer().status, 200);
            }
        };
        thread::scope(|scope| {
            for (nth, gateway) in gateways.iter().enumerate() {
                scope.spawn(move || ask(gateway, nth));
            }
        });
        for nth in 0..2 {
            let arrivals = origin.arrivals().into_iter();
            let of_it = arrivals.filter(|it| number(&it.target, "gateway") == nth);
            let order: Vec<_> = of_it.map(|it| number(&it.target, "number")).collect();
            // Neighbours may swap between a gateway and the origin: each is late by only a few
            // positions.
            let mut last = 0;
            let is_late = |number: &&usize| {
                last = last.max(**number);
                **number + 4 <= last
            };
            let late = order.iter().filter(is_late).count();
            if late > 6 {
                return Err(format!("{late} of 600 left behind others that came later"));
            }
        }
        let leased = gateways.each_ref().map(leased);
        if leased.iter().any(|count| *count < 200) {
            return Err(format!("leases decided on {leased:?} of 600"));
        }
        Ok(())
    });
}
