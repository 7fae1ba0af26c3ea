//! Tests of leases: shares of a busy key's limit that gateways take ahead.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::night::day_or_night;
use crate::support::{Client, Gateway, MS, Origin, eventually, now};

pub const RATE: usize = 500;
const BURST: usize = 200;
/// Clients of each gateway.
const CLIENTS: usize = 4;

/// Requests that clients sent, with their times.
#[derive(Default)]
pub struct Sent {
    /// Instants by the number in the target.
    when: Mutex<HashMap<usize, Instant>>,
    pub next: AtomicUsize,
    /// Number of responses that were neither 200 nor 429.
    pub others: AtomicUsize,
}

/// Keeps gateways busy while `meanwhile` runs. Passes it a switch that ends each gateway's load.
pub fn under_load(gateways: &[&Gateway], sent: &Sent, meanwhile: impl FnOnce(&[AtomicBool])) {
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
                            Ok(answer) if answer.status == 200 => {}
                            // By day requests are rejected too, but less often.
                            Ok(answer) if answer.status == 429 => {
                                thread::sleep(day_or_night(3 * MS, Duration::ZERO));
                            }
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

/// Returns the number after `name=` in a target.
pub fn number(target: &str, name: &str) -> usize {
    let (_, rest) = target.split_once(&format!("{name}=")).expect("a number");
    let rest = rest.split('&').next().unwrap_or_default();
    rest.parse().expect("a number")
}

/// Checks all spans: a request that was sent and arrived within one was admitted in it.
pub fn check_all_spans(origin: &Origin, sent: &Sent) {
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

pub fn text(origin: &Origin, redis: &Redis, lease: &str, more: &str) -> String {
    let more = format!("lease = \"{lease}\"\n{more}");
    let limit = format!(", burst = {BURST}, nodelay = true");
    file(origin, &redis.url(), &format!("{RATE}r/s"), &more, &limit)
}

pub fn arrived(origin: &Origin, gateway: usize, from: Instant, until: Instant) -> usize {
    let part = format!("gateway={gateway}&");
    let moments = origin.moments(&part);
    moments
        .iter()
        .filter(|at| (from..until).contains(*at))
        .count()
}

/// Returns the number of joins that a lease decided.
pub fn leased(gateway: &Gateway) -> i64 {
    let labels = [("zone", "z"), ("result", "leased")];
    gateway
        .metrics()
        .count("drip_store_operations_total", &labels)
}

#[test]
fn a_lease_changes_while_requests_come_and_ends_with_redis() {
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
        // All requests are refused with 503: nothing is left of the lease.
        let began = now();
        thread::sleep(300 * MS);
        assert_eq!(arrived(&origin, 0, began, now()), 0);
    });
    assert!(sent.others.load(Ordering::SeqCst) > 0);
}
