//! A gate backs off in front of a fragile origin: one that sheds, one that queues, and one that is well.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{
    Client, Exchange, Gateway, MS, Origin, eventually, fetch, half_alone, now, one_origin,
};

const SECOND: Duration = Duration::from_secs(1);
const WORK: Duration = Duration::from_millis(50);

/// When the origin falls from ten workers to three, and when it is well again.
const FALL: Duration = Duration::from_secs(4);
const BACK: Duration = Duration::from_secs(22);
const END: Duration = Duration::from_secs(56);

/// A backend with a few workers. Requests wait for one of them, as many as may.
struct Backend {
    began: Instant,
    may_wait: usize,
    state: Mutex<Working>,
    freed: Condvar,
    /// When each answer was given, how long it took, and whether it was a good one.
    answers: Mutex<Vec<(Duration, Duration, bool)>>,
}

#[derive(Default)]
struct Working {
    busy: usize,
    /// The tickets of those who wait, in their order.
    waiting: VecDeque<u64>,
    next: u64,
}

impl Backend {
    fn start(may_wait: usize) -> (Arc<Self>, Origin) {
        let backend = Arc::new(Self {
            began: now(),
            may_wait,
            state: Mutex::default(),
            freed: Condvar::new(),
            answers: Mutex::default(),
        });
        let serving = Arc::clone(&backend);
        let origin = Origin::answering(move |exchange| serving.serve(exchange));
        (backend, origin)
    }

    fn workers(&self) -> usize {
        let falls = FALL..BACK;
        if falls.contains(&self.began.elapsed()) {
            3
        } else {
            10
        }
    }

    fn serve(&self, exchange: &mut Exchange) -> std::io::Result<()> {
        let came = now();
        let is_served = self.work();
        let answer = (self.began.elapsed(), came.elapsed(), is_served);
        self.answers.lock().expect("no panic").push(answer);
        if is_served {
            exchange.reply(b"ok")
        } else {
            exchange.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        }
    }

    /// Waits for a worker, first come first served, and works; `false` if too many wait.
    fn work(&self) -> bool {
        let mut state = self.state.lock().expect("no panic");
        if state.waiting.len() >= self.may_wait && state.busy >= self.workers() {
            return false;
        }
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back(ticket);
        while state.waiting.front() != Some(&ticket) || state.busy >= self.workers() {
            // The number of workers changes with time.
            let waited = self.freed.wait_timeout(state, 20 * MS);
            state = waited.expect("no panic").0;
        }
        state.waiting.pop_front();
        state.busy += 1;
        drop(state);
        self.freed.notify_all();
        thread::sleep(WORK);
        self.state.lock().expect("no panic").busy -= 1;
        self.freed.notify_all();
        true
    }

    /// Good answers a second, the share of others, and the 99th percentile of the time, in a span.
    fn summary(&self, from: Duration, to: Duration) -> (f64, f64, Duration) {
        let answers = self.answers.lock().expect("no panic");
        let inside = |answer: &&(Duration, _, _)| (from..to).contains(&answer.0);
        let answers: Vec<_> = answers.iter().filter(inside).collect();
        let count = |count: usize| f64::from(u32::try_from(count).expect("not that many"));
        let good = answers.iter().filter(|(.., good)| *good).count();
        let mut times: Vec<_> = answers.iter().map(|(_, time, _)| *time).collect();
        times.sort_unstable();
        let p99 = times
            .get(times.len() * 99 / 100)
            .copied()
            .unwrap_or_default();
        let bad = count(answers.len() - good) / count(answers.len().max(1));
        (
            count(good) / to.saturating_sub(from).as_secs_f64(),
            bad,
            p99,
        )
    }
}

fn gated(origin: &Origin, gate: &str) -> String {
    one_origin(
        origin.address,
        "workers = 2",
        &format!("max_queue = 30\n{gate}"),
    )
}

/// Asks `a_second` times a second until `end`, whatever becomes of the requests.
fn offer(gateway: &Gateway, a_second: u32, end: Instant) {
    const CLIENTS: u32 = 120;
    let (began, apart) = (now(), SECOND * CLIENTS / a_second);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || {
                let mut next = began + apart * number / CLIENTS;
                let mut client = Client::connect(gateway.address());
                while next < end {
                    thread::sleep(next.saturating_duration_since(now()));
                    client.get("/");
                    if client.try_answer().is_err() {
                        client = Client::connect(gateway.address());
                    }
                    next += apart;
                }
            });
        }
    });
}

fn rate_now(gateway: &Gateway) -> f64 {
    let labels = [("origin", "app"), ("of", "now")];
    let rate = gateway.metrics().value("drip_origin_rate", &labels);
    rate.expect("the gate has a rate")
}

fn backoffs(gateway: &Gateway, reason: &str) -> i64 {
    let labels = [("origin", "app"), ("reason", reason)];
    gateway
        .metrics()
        .count("drip_origin_backoffs_total", &labels)
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn an_origin_that_sheds_and_one_that_queues_get_what_they_can_take_and_a_healthy_one_everything() {
    let _alone = half_alone();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (backend, origin) = Backend::start(20);
            let gate = "rate = \"200r/s\"\n[origins.app.backoff]";
            let gateway = Gateway::start(&gated(&origin, gate));
            offer(&gateway, 150, backend.began + END);
            let (good, bad, _) = backend.summary(FALL + 5 * SECOND, BACK);
            let rate = rate_now(&gateway);
            println!(
                "sheds: {good:.1} good a second, {:.1} % errors, in the end {rate:.0}r/s",
                bad * 100.0
            );
            // Of 60 a second. On a busy machine the backend itself is slower.
            assert!(good > 48.0 && bad < 0.1, "{good} {bad}");
            assert!(backoffs(&gateway, "trouble") > 0);
            assert!(rate > 190.0, "{rate}");
        });
        scope.spawn(|| {
            let (backend, origin) = Backend::start(usize::MAX);
            let gate =
                "rate = \"200r/s\"\nmax_in_flight = 50\n[origins.app.backoff]\nslow = \"250ms\"";
            let gateway = Gateway::start(&gated(&origin, gate));
            offer(&gateway, 150, backend.began + END);
            let (good, _, p99) = backend.summary(FALL + 5 * SECOND, BACK);
            println!("queues: {good:.1} good a second, p99 {p99:?}");
            assert!(good > 48.0 && p99 < 600 * MS, "{good} {p99:?}");
            assert!(backoffs(&gateway, "slow") > 0);
        });
        scope.spawn(|| {
            let count = AtomicUsize::new(0);
            let origin = Origin::answering(move |exchange| {
                let nth = count.fetch_add(1, Ordering::Relaxed);
                thread::sleep(if nth.is_multiple_of(4) { 400 } else { 20 } * MS);
                exchange.reply(b"ok")
            });
            let gate =
                "rate = \"200r/s\"\nmax_in_flight = 80\n[origins.app.backoff]\nslow = \"900ms\"";
            let gateway = Gateway::start(&gated(&origin, gate));
            offer(&gateway, 100, now() + 20 * SECOND);
            let reasons = ["trouble", "slow", "retry_after"];
            assert_eq!(reasons.map(|reason| backoffs(&gateway, reason)), [0; 3]);
            assert!((rate_now(&gateway) - 200.0).abs() < 0.1);
        });
    });
}

/// An origin that answers with this status, and a file whose gate backs off.
fn troubled(head: &'static str, backoff: &str) -> (Origin, Gateway) {
    let origin = Origin::answering(move |exchange| exchange.send(head.as_bytes()));
    let gate = format!("rate = \"200r/s\"\n[origins.app.backoff]\n{backoff}");
    let gateway = Gateway::start(&gated(&origin, &gate));
    (origin, gateway)
}

fn ask_for(gateway: &Gateway, span: Duration) {
    let end = now() + span;
    while now() < end {
        fetch(gateway.address(), "/");
        thread::sleep(20 * MS);
    }
}

const SHED: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_shadow_shows_and_counts_and_slows_nothing_down() {
    let (origin, gateway) = troubled(SHED, "mode = \"shadow\"\nfloor = \"1%\"");
    eventually("it is cut", || {
        ask_for(&gateway, SECOND);
        backoffs(&gateway, "trouble") > 2
    });
    assert!(rate_now(&gateway) < 60.0);
    let before = origin.arrivals().len();
    let mut clients: Vec<_> = (0..100)
        .map(|_| Client::connect(gateway.address()))
        .collect();
    let began = now();
    for client in &mut clients {
        client.get("/");
    }
    for client in &mut clients {
        client.answer();
    }
    // A hundred at 200 a second take half a second; at less than 60, more than 1.6 s.
    let took = began.elapsed();
    assert!(took < 1500 * MS, "{took:?}");
    assert!(origin.arrivals().len() > before + 30);
}

#[test]
fn the_floor_holds_and_a_reload_keeps_the_share() {
    let (origin, gateway) = troubled(SHED, "floor = \"25%\"");
    eventually("it is at the floor", || {
        ask_for(&gateway, SECOND);
        (rate_now(&gateway) - 50.0).abs() < 0.1
    });
    let gate = "rate = \"100r/s\"\n[origins.app.backoff]\nfloor = \"25%\"";
    gateway.site.write(&gated(&origin, gate));
    eventually("the file is in force", || {
        let metrics = gateway.metrics();
        metrics.value("drip_origin_rate", &[("origin", "app"), ("of", "file")]) == Some(100.0)
    });
    let rate = rate_now(&gateway);
    assert!((25.0..40.0).contains(&rate), "{rate}");
    gateway.site.write(&gated(&origin, "rate = \"100r/s\""));
    eventually("nothing is lowered any more", || {
        (rate_now(&gateway) - 100.0).abs() < 0.1
    });
}

#[test]
fn an_origin_that_asks_for_a_pause_gets_it() {
    const HEAD: &str =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n";
    let (origin, gateway) = troubled(HEAD, "");
    eventually("it pauses", || {
        ask_for(&gateway, 300 * MS);
        backoffs(&gateway, "retry_after") > 0
    });
    // Requests of a client that waits until the pause is over.
    for _ in 0..20 {
        fetch(gateway.address(), "/");
    }
    let moments = origin.moments("/");
    let longest = moments.windows(2).map(|two| two[1] - two[0]).max();
    assert!(longest > Some(2500 * MS), "{longest:?}");
    let labels = [("origin", "app"), ("by", "pause")];
    let paused = gateway
        .metrics()
        .value("drip_origin_blocked_seconds_total", &labels);
    assert!(paused > Some(1.0), "{paused:?}");
}

/// A zone whose keys share the gate.
const SHARED: &str = "rate = \"200r/s\"\nshare = \"key\"\n\
    [zones.key]\nkey = \"$arg_key\"\nrate = \"none\"\n[origins.app.backoff]\n";

/// Asks all the time as each of these keys. Returns how many other answers than 200 each got.
fn ask_as(gateway: &Gateway, keys: &[&str], span: Duration) -> Vec<usize> {
    let ask = |key: &str| {
        let (end, mut bad) = (now() + span, 0);
        while now() < end {
            let status = fetch(gateway.address(), &format!("/?key={key}")).status;
            bad += usize::from(status != 200);
            thread::sleep(10 * MS);
        }
        bad
    };
    thread::scope(|scope| {
        let all: Vec<_> = keys.iter().map(|key| scope.spawn(|| ask(key))).collect();
        let all = all.into_iter().map(|it| it.join().expect("no panic"));
        all.collect()
    })
}

#[test]
fn what_one_key_provokes_slows_nobody_down() {
    const HEAD: &str =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n";
    let origin = Origin::answering(|exchange| {
        if exchange.target().contains("bad") {
            exchange.send(HEAD.as_bytes())
        } else {
            exchange.reply(b"ok")
        }
    });
    let gateway = Gateway::start(&gated(&origin, SHARED));
    let keys = ["a", "bad", "b", "bad", "bad", "bad"];
    let refused = ask_as(&gateway, &keys, 5 * SECOND);
    assert_eq!((refused[0], refused[2]), (0, 0), "{refused:?}");
    assert!(refused[1] > 10, "{refused:?}");
    let lowered = |reason| backoffs(&gateway, reason);
    assert_eq!((lowered("trouble"), lowered("retry_after")), (0, 0));
    assert!((rate_now(&gateway) - 200.0).abs() < 0.1);
    // What two keys get is the origin's, and what the only one gets.
    for keys in [&["bad1", "bad2", "a"][..], &["bad"]] {
        let gateway = Gateway::start(&gated(&origin, SHARED));
        eventually("it is cut and pauses", || {
            ask_as(&gateway, keys, SECOND);
            backoffs(&gateway, "trouble") > 0 && backoffs(&gateway, "retry_after") > 0
        });
        // A pause for one key alone is over when another one comes.
        let is_for_all = keys.len() > 1;
        let status = fetch(gateway.address(), "/?key=b").status;
        assert_eq!(status, if is_for_all { 503 } else { 200 });
    }
}

#[test]
fn a_page_that_is_slow_for_one_key_lowers_no_places() {
    let origin = Origin::answering(|exchange| {
        if exchange.target().contains("slow") {
            thread::sleep(400 * MS);
        }
        exchange.reply(b"ok")
    });
    let shared = SHARED.replace("share", "max_in_flight = 50\nshare") + "slow = \"200ms\"\n";
    let gateway = Gateway::start(&gated(&origin, &shared));
    let mut keys = vec!["a", "b", "c", "d"];
    keys.extend(["slow"; 20]);
    ask_as(&gateway, &keys, 4 * SECOND);
    assert_eq!(backoffs(&gateway, "slow"), 0);
    // What is slow for several keys is the origin's, and what is slow for the only one.
    for keys in [&["slow1", "slow2", "a"][..], &["slow"]] {
        let gateway = Gateway::start(&gated(&origin, &shared));
        eventually("places are cut", || {
            ask_as(&gateway, keys, SECOND);
            backoffs(&gateway, "slow") > 0
        });
    }
}
