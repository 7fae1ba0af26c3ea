//! Tests that the back-off of one gateway applies to all gateways that share the origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::{
    Client, Done, Gateway, Origin, best_of_three, eventually, now, quarter_alone,
};

use super::{file, millis, pass, rate_of, within};

pub const SHED: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// Starts an origin that fails requests with `key=a` while the switch is on.
pub fn unwell(answer: Option<&'static str>) -> (Arc<AtomicBool>, Origin) {
    let switch = Arc::new(AtomicBool::new(false));
    let is_on = Arc::clone(&switch);
    let origin = Origin::answering(move |exchange| {
        let is_bad = is_on.load(Ordering::SeqCst) && exchange.target().contains("key=a");
        match answer {
            Some(answer) if is_bad => exchange.send(answer.as_bytes()),
            None if is_bad => {
                thread::sleep(millis(500));
                exchange.reply(b"slow")
            }
            _ => exchange.reply(b"ok"),
        }
    });
    (switch, origin)
}

pub fn gate(backoff: &str) -> String {
    format!(
        "rate = \"200r/s\"\nstore = \"redis\"\ngateways = 3\nmax_in_flight = 40\n[origins.app.backoff]\n{backoff}"
    )
}

/// Keeps this many clients busy at each gateway, whatever responses they get.
///
/// All clients of a gateway use the same key.
pub fn busy<T>(gateways: &[&Gateway], clients: usize, meanwhile: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::default();
    let ask = |gateway: &Gateway, target: &str| {
        let mut client = Client::connect(gateway.address());
        while !stop.load(Ordering::SeqCst) {
            client.get(target);
            if client.try_answer().is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for (gateway, key) in gateways.iter().zip(["a", "b", "c"]) {
            for _ in 0..clients {
                scope.spawn(move || ask(gateway, &format!("/?key={key}")));
            }
        }
        let _done = Done(&stop);
        meanwhile()
    })
}

pub fn now_of(gateway: &Gateway, name: &str) -> f64 {
    let labels = [("origin", "app"), ("of", "now")];
    gateway.metrics().value(name, &labels).expect("a gate")
}

pub fn rate_now(gateway: &Gateway) -> f64 {
    now_of(gateway, "drip_origin_rate")
}

pub fn counted(gateway: &Gateway, name: &str, reason: &str) -> i64 {
    let labels = [("origin", "app"), ("reason", reason)];
    gateway.metrics().count(name, &labels)
}

/// Waits until the condition is true. Returns the duration of the wait. Checks often.
pub fn within_span(what: &str, most: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = now();
    while !is_so() {
        assert!(began.elapsed() < most, "{what}: not within {most:?}");
        thread::sleep(millis(20));
    }
    began.elapsed()
}

pub struct Three {
    pub redis: Redis,
    pub gateways: Vec<Gateway>,
}

impl Three {
    pub fn start(origin: &Origin, backoff: &str) -> Self {
        let redis = Redis::start();
        let text = file(origin, &redis.url(), &gate(backoff));
        let gateways = (0..3).map(|_| Gateway::start(&text)).collect();
        Self { redis, gateways }
    }

    pub fn all(&self) -> Vec<&Gateway> {
        self.gateways.iter().collect()
    }
}

#[test]
fn a_cut_at_one_gateway_is_in_force_at_all_within_a_second_and_they_grow_as_one() {
    let _machine = quarter_alone();
    let (is_bad, origin) = unwell(Some(SHED));
    let three = Three::start(&origin, "floor = \"25%\"");
    let all = three.all();
    busy(&all, 8, || {
        pass(millis(day_or_night(1000, 2000)));
        is_bad.store(true, Ordering::SeqCst);
        eventually("one is cut", || rate_now(all[0]) < 199.0);
        let took = within_span("all are cut", millis(1000), || {
            all[1..].iter().all(|it| rate_now(it) < 199.0)
        });
        println!("the others are cut {took:?} later");
        eventually("one is at the floor", || rate_now(all[0]) < 50.5);
        let took = within_span("all are at the floor", millis(1000), || {
            all[1..].iter().all(|it| rate_now(it) < 50.5)
        });
        println!("the others are at the floor {took:?} later");
        // Slots granted before expire or are used.
        pass(millis(300));
        best_of_three(|_| {
            let span = pass(millis(day_or_night(1000, 2000)));
            let rate = rate_of(&within(&origin, "key=", span), span);
            println!("{rate:.1} a second at the origin");
            if (44.0..53.0).contains(&rate) {
                return Ok(());
            }
            Err(format!("{rate} a second, not 50"))
        });
        for gateway in &all[1..] {
            assert!(counted(gateway, "drip_origin_adopted_backoffs_total", "trouble") > 0);
            assert_eq!(counted(gateway, "drip_origin_backoffs_total", "trouble"), 0);
        }
        let api = all[1].admin("/api/origins").expect("it answers");
        let api = String::from_utf8_lossy(&api.body).into_owned();
        assert!(
            api.contains("answers to another gateway were trouble"),
            "{api}"
        );
        if day_or_night(true, false) {
            return;
        }
        is_bad.store(false, Ordering::SeqCst);
        let began = now();
        let mut fastest = 0.0_f64;
        let back = within_span("all are back", Duration::from_secs(60), || {
            let grown = |it: &&Gateway| rate_now(it) - 50.0;
            let most = all.iter().map(grown).fold(0.0, f64::max);
            fastest = fastest.max(most / (began.elapsed().as_secs_f64() + 0.2));
            all.iter().all(|it| rate_now(it) > 199.0)
        });
        println!("back after {back:?}, at most {fastest:.2} a second faster each second");
        // The rate grows by at most 5 % of 200 per second.
        assert!(fastest <= 10.3, "{fastest}");
        // Growing back from a quarter takes 15 s, and up to 30 s of steady rate before.
        assert!((15..48).contains(&back.as_secs()), "{back:?}");
    });
}
