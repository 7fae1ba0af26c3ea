//! What one gateway's back-off learns counts at all that share the origin.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::redis::Redis;
use crate::support::{Client, Done, Gateway, Origin, eventually, half_alone, now};

use super::{file, millis, pass, rate_of, within};

const SHED: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
const ASKS_TO_WAIT: &str =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n";

/// An origin that is unwell for requests with `key=a` while the switch is on.
fn unwell(answer: Option<&'static str>) -> (Arc<AtomicBool>, Origin) {
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

fn gate(backoff: &str) -> String {
    format!(
        "rate = \"200r/s\"\nstore = \"redis\"\ngateways = 3\nmax_in_flight = 40\n[origins.app.backoff]\n{backoff}"
    )
}

/// Keeps so many clients busy at each gateway, with a key of its own, whatever they are answered.
fn busy<T>(gateways: &[&Gateway], clients: usize, meanwhile: impl FnOnce() -> T) -> T {
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

fn now_of(gateway: &Gateway, name: &str) -> f64 {
    let labels = [("origin", "app"), ("of", "now")];
    gateway.metrics().value(name, &labels).expect("a gate")
}

fn rate_now(gateway: &Gateway) -> f64 {
    now_of(gateway, "drip_origin_rate")
}

fn counted(gateway: &Gateway, name: &str, reason: &str) -> i64 {
    let labels = [("origin", "app"), ("reason", reason)];
    gateway.metrics().count(name, &labels)
}

/// Waits until it is so, and returns for how long. Looks often.
fn within_span(what: &str, most: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = now();
    while !is_so() {
        assert!(began.elapsed() < most, "{what}: not within {most:?}");
        thread::sleep(millis(20));
    }
    began.elapsed()
}

struct Three {
    redis: Redis,
    gateways: Vec<Gateway>,
}

impl Three {
    fn start(origin: &Origin, backoff: &str) -> Self {
        let redis = Redis::start();
        let text = file(origin, &redis.url(), &gate(backoff));
        let gateways = (0..3).map(|_| Gateway::start(&text)).collect();
        Self { redis, gateways }
    }

    fn all(&self) -> Vec<&Gateway> {
        self.gateways.iter().collect()
    }
}

#[test]
fn a_cut_at_one_gateway_is_in_force_at_all_within_a_second_and_they_grow_as_one() {
    let _machine = half_alone();
    let (is_bad, origin) = unwell(Some(SHED));
    let three = Three::start(&origin, "floor = \"25%\"");
    let all = three.all();
    busy(&all, 8, || {
        pass(millis(2000));
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
        // What was granted before lapses or leaves.
        pass(millis(300));
        let span = pass(millis(2000));
        let rate = rate_of(&within(&origin, "key=", span), span);
        println!("{rate:.1} a second at the origin");
        assert!((44.0..53.0).contains(&rate), "{rate} a second, not 50");
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
        // 5 % of 200 each second, at most.
        assert!(fastest <= 10.3, "{fastest}");
        // From a quarter: 15 s, and up to 30 s steady.
        assert!((15..48).contains(&back.as_secs()), "{back:?}");
    });
}

fn longest_gap(moments: &[Instant]) -> Duration {
    let gaps = moments.windows(2).map(|two| two[1] - two[0]);
    gaps.max().unwrap_or_default()
}

#[test]
fn a_pause_that_one_is_asked_for_holds_at_all() {
    let _machine = half_alone();
    let (is_bad, origin) = unwell(Some(ASKS_TO_WAIT));
    let three = Three::start(&origin, "");
    let all = three.all();
    busy(&all, 4, || {
        pass(millis(2000));
        let began = now();
        is_bad.store(true, Ordering::SeqCst);
        eventually("one pauses", || {
            counted(all[0], "drip_origin_backoffs_total", "retry_after") > 0
        });
        pass(millis(1000));
        is_bad.store(false, Ordering::SeqCst);
        let span = (began, pass(millis(4000)).1);
        let moments = within(&origin, "key=", span);
        let gap = longest_gap(&moments);
        println!("nothing arrives for {gap:?}");
        assert!(gap > millis(2200), "{gap:?}");
        for gateway in &all[1..] {
            assert!(counted(gateway, "drip_origin_adopted_backoffs_total", "retry_after") > 0);
        }
    });
}

#[test]
fn an_origin_that_is_slow_to_one_has_fewer_at_once_from_all() {
    let _machine = half_alone();
    let (is_bad, origin) = unwell(None);
    let three = Three::start(&origin, "slow = \"250ms\"");
    let all = three.all();
    let places = |it: &Gateway| now_of(it, "drip_origin_in_flight_limit");
    busy(&all, 8, || {
        pass(millis(2000));
        is_bad.store(true, Ordering::SeqCst);
        eventually("one is cut", || places(all[0]) < 40.0);
        let took = within_span("all are cut", millis(1000), || {
            all[1..].iter().all(|it| places(it) < 40.0)
        });
        println!("the others are cut {took:?} later");
        is_bad.store(false, Ordering::SeqCst);
        let back = within_span("all are back", Duration::from_secs(45), || {
            all.iter().all(|it| places(it) > 39.0)
        });
        println!("back after {back:?}");
    });
}

/// An origin that works on one request at a time, and counts what is there.
fn crowded(each: Duration) -> (Arc<[AtomicU32; 2]>, Origin) {
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let at_once = Arc::clone(&counts);
    let works = Mutex::new(());
    let origin = Origin::answering(move |exchange| {
        let [here, most] = &*at_once;
        let there = here.fetch_add(1, Ordering::SeqCst) + 1;
        most.fetch_max(there, Ordering::SeqCst);
        let turn = works.lock();
        thread::sleep(each);
        drop(turn);
        here.fetch_sub(1, Ordering::SeqCst);
        exchange.reply(b"ok")
    });
    (counts, origin)
}

/// Five are answered in time. What back-off leaves is what all gateways together have at the origin, not each.
#[test]
fn places_that_are_cut_are_those_of_all_gateways_together() {
    let _machine = half_alone();
    let (at_origin, origin) = crowded(millis(50));
    let redis = Redis::start();
    let gate = "store = \"redis\"\ngateways = 3\nmax_in_flight = 18\n[origins.app.backoff]\nslow = \"250ms\"";
    let text = file(&origin, &redis.url(), gate);
    let gateways: Vec<_> = (0..3).map(|_| Gateway::start(&text)).collect();
    let all: Vec<_> = gateways.iter().collect();
    let places = |it: &Gateway| now_of(it, "drip_origin_in_flight_limit");
    busy(&all, 10, || {
        eventually("all have been cut to what is in time", || {
            all.iter().all(|it| places(it) <= 9.0)
        });
        // What ran before has ended, and the pool knows.
        pass(millis(2000));
        for _ in 0..5 {
            let before = all.iter().map(|it| places(it)).fold(0.0, f64::max);
            at_origin[1].store(0, Ordering::SeqCst);
            pass(millis(1000));
            let after = all.iter().map(|it| places(it)).fold(0.0, f64::max);
            let most = at_origin[1].load(Ordering::SeqCst);
            println!("{before} and {after} by back-off, {most} at the origin at once");
            // A request whose answer was on its way to the gateway is none of the origin's any more.
            let bound = before.max(after) + 1.0;
            assert!(f64::from(most) <= bound, "{most} at once");
        }
    });
}

#[test]
fn without_redis_each_backs_off_alone_and_tells_when_it_is_back() {
    let _machine = half_alone();
    let (is_bad, origin) = unwell(Some(SHED));
    let mut three = Three::start(&origin, "floor = \"25%\"");
    let Three { redis, gateways } = &mut three;
    let all: Vec<_> = gateways.iter().collect();
    busy(&all, 8, || {
        pass(millis(2000));
        redis.kill();
        pass(millis(500));
        is_bad.store(true, Ordering::SeqCst);
        eventually("one is at the floor", || rate_now(all[0]) < 50.5);
        assert!(all[1..].iter().all(|it| rate_now(it) > 199.0));
        redis.restart();
        let took = within_span("all are cut", millis(3000), || {
            all[1..].iter().all(|it| rate_now(it) < 60.0)
        });
        println!("the others are cut {took:?} after Redis is back");
        redis.kill();
        pass(millis(1000));
        assert!(all.iter().all(|it| rate_now(it) < 60.0), "they stay cut");
        is_bad.store(false, Ordering::SeqCst);
        let back = within_span("all are back", Duration::from_secs(60), || {
            all.iter().all(|it| rate_now(it) > 199.0)
        });
        println!("back after {back:?} without Redis");
    });
}

#[test]
fn a_shadow_cuts_nobody_and_follows_nobody() {
    let _machine = half_alone();
    let (is_bad, origin) = unwell(Some(SHED));
    let redis = Redis::start();
    let shadow = file(&origin, &redis.url(), &gate("mode = \"shadow\""));
    let acts = file(&origin, &redis.url(), &gate("floor = \"25%\""));
    let shadow = Gateway::start(&shadow);
    let others = [Gateway::start(&acts), Gateway::start(&acts)];
    is_bad.store(true, Ordering::SeqCst);
    busy(&[&shadow, &others[0], &others[1]], 6, || {
        eventually("the shadow would be cut", || rate_now(&shadow) < 60.0);
        pass(millis(1500));
        assert!(others.iter().all(|it| rate_now(it) > 199.0));
    });
    // Now the other way round.
    busy(&[&others[0], &shadow, &others[1]], 6, || {
        eventually("one is cut", || rate_now(&others[0]) < 60.0);
        eventually("the other one, too", || rate_now(&others[1]) < 60.0);
        assert_eq!(
            counted(&shadow, "drip_origin_adopted_backoffs_total", "trouble"),
            0
        );
    });
}
