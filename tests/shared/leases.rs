//! Leases: places of a busy key that gateways take ahead.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::shared::file;
use crate::shared::relay::Relay;
use crate::support::redis::Redis;
use crate::support::{Client, Gateway, MS, Origin, best_of_three, eventually, half_alone, now};

const RATE: usize = 500;
const BURST: usize = 200;
/// Clients of each gateway.
const CLIENTS: usize = 4;

/// What clients sent, and when.
#[derive(Default)]
struct Sent {
    /// By the number that is in the target.
    when: Mutex<HashMap<usize, Instant>>,
    next: AtomicUsize,
    /// Answers that were neither 200 nor 429.
    others: AtomicUsize,
}

/// Keeps gateways busy while `meanwhile` runs. It gets, for each gateway, what ends its load.
fn under_load(gateways: &[&Gateway], sent: &Sent, meanwhile: impl FnOnce(&[AtomicBool])) {
    let ends: Vec<AtomicBool> = gateways.iter().map(|_| AtomicBool::default()).collect();
    thread::scope(|scope| {
        for (nth, gateway) in gateways.iter().enumerate() {
            for _ in 0..CLIENTS {
                let (address, end) = (gateway.address(), &ends[nth]);
                scope.spawn(move || {
                    let mut client = Client::connect(address);
                    let mut writer = client.sender();
                    while !end.load(Ordering::SeqCst) {
                        let number = sent.next.fetch_add(1, Ordering::SeqCst);
                        sent.when.lock().expect("no panic").insert(number, now());
                        let target = format!("/?key=a&gateway={nth}&number={number}");
                        let line = format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n");
                        let written = writer.write_all(line.as_bytes());
                        match written.and_then(|()| client.try_answer()) {
                            Ok(answer) if matches!(answer.status, 200 | 429) => {}
                            _ if end.load(Ordering::SeqCst) => return,
                            _ => {
                                sent.others.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    }
                });
            }
        }
        meanwhile(&ends);
        for end in &ends {
            end.store(true, Ordering::SeqCst);
        }
    });
}

/// The number after `name=` in a target.
fn number(target: &str, name: &str) -> usize {
    let (_, rest) = target.split_once(&format!("{name}=")).expect("a number");
    let rest = rest.split('&').next().unwrap_or_default();
    rest.parse().expect("a number")
}

/// Checks all spans: a request that was sent and arrived within one was let through in it.
fn check_all_spans(origin: &Origin, sent: &Sent) {
    let when = sent.when.lock().expect("no panic");
    let arrivals = origin.arrivals().into_iter();
    let mut spans: Vec<(Instant, Instant)> = arrivals
        .map(|it| (when[&number(&it.target, "number")], it.at))
        .collect();
    spans.sort_by_key(|(sent, _)| std::cmp::Reverse(*sent));
    let mut arrived: Vec<Instant> = Vec::new();
    for (from, at) in spans {
        let place = arrived.partition_point(|other| *other <= at);
        arrived.insert(place, at);
        for (before, until) in arrived.iter().enumerate() {
            let span = (*until - from).as_secs_f64();
            #[allow(clippy::cast_precision_loss)]
            let (count, most) = ((before + 1) as f64, RATE as f64 * span + (BURST + 1) as f64);
            assert!(count <= most, "{count} in {span} s: at most {most}");
        }
    }
}

/// How many calls of scripts the Redis has had.
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

fn text(origin: &Origin, redis: &Redis, lease: &str, more: &str) -> String {
    let more = format!("lease = \"{lease}\"\n{more}");
    let limit = format!(", burst = {BURST}, nodelay = true");
    file(origin, &redis.url(), &format!("{RATE}r/s"), &more, &limit)
}

fn arrived(origin: &Origin, gateway: usize, from: Instant, until: Instant) -> usize {
    let part = format!("gateway={gateway}&");
    let moments = origin.moments(&part);
    moments
        .iter()
        .filter(|at| (from..until).contains(*at))
        .count()
}

/// What a run of three busy gateways gives: how many calls of Redis each request took.
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

/// Three gateways under one key: each span has its rate and the burst at most, the rate is reached, each gateway has its
/// part of each second, and Redis has little to do.
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

/// The load of one gateway stops, and another one is killed: the third has all after the length of a lease.
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

/// Requests that wait in a queue leave in their order, although most of them never asked Redis, and others come while an
/// ask is under way.
#[test]
fn who_came_first_to_a_gateway_leaves_first() {
    let _machine = half_alone();
    best_of_three(|_| {
        let (origin, redis) = (Origin::start(), Redis::start());
        // Ten requests come while Redis is asked.
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
            // Neighbours may change their places between a gateway and the origin: each is at most some places late.
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

/// How many joins a lease decided.
fn leased(gateway: &Gateway) -> i64 {
    let labels = [("zone", "z"), ("result", "leased")];
    gateway
        .metrics()
        .count("drip_store_operations_total", &labels)
}

#[test]
fn a_lease_changes_while_requests_come_and_ends_with_redis() {
    let _machine = half_alone();
    let (origin, mut redis) = (Origin::start(), Redis::start());
    let text = |lease: &str| text(&origin, &redis, lease, "on_store_failure = \"closed\"");
    let [without, with] = [text("0s"), text("100ms")];
    let gateway = Gateway::start(&without);
    let sent = Sent::default();
    under_load(&[&gateway], &sent, |_| {
        thread::sleep(500 * MS);
        assert_eq!(leased(&gateway), 0);
        gateway.site.write(&with);
        eventually("it has leases", || leased(&gateway) > 100);
        gateway.site.write(&without);
        eventually("it has none", || {
            let before = leased(&gateway);
            thread::sleep(300 * MS);
            leased(&gateway) == before
        });
        gateway.site.write(&with);
        let before = leased(&gateway);
        eventually("it has them again", || leased(&gateway) > before + 100);
        check_all_spans(&origin, &sent);
        assert_eq!(sent.others.load(Ordering::SeqCst), 0);
        redis.kill();
        eventually("it is noticed", || {
            gateway.metrics().count("drip_store_up", &[]) == 0
        });
        thread::sleep(200 * MS);
        // All are refused with 503: nothing is left of the lease.
        let began = now();
        thread::sleep(300 * MS);
        assert_eq!(arrived(&origin, 0, began, now()), 0);
    });
    assert!(sent.others.load(Ordering::SeqCst) > 0);
}
