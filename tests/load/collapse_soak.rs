//! A soak test of collapse: random clients, random responses, and a changing file.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::collapse::{file_with, request};
use crate::support::rng::Rng;
use crate::support::{Client, Exchange, Gateway, Origin, eventually, half_alone, now};

const CLIENTS: u64 = 24;
const PAGES: u64 = 5;
const SPAN: Duration = Duration::from_secs(12);
/// Sum of the longest `keep` and `stale` of all files.
const OLDEST: Duration = Duration::from_secs(2);
/// Allowed difference between the clock readings of origin and client on a busy machine.
const SLACK: Duration = Duration::from_secs(3);

/// Instants at which the origin completed each numbered response.
#[derive(Default)]
struct Sent {
    next: AtomicU64,
    complete: Mutex<Vec<(u64, Instant)>>,
}

/// Answers with the target and a number, in one of many ways.
fn answer(exchange: &mut Exchange, sent: &Sent, seed: u64) -> std::io::Result<()> {
    let number = sent.next.fetch_add(1, Ordering::SeqCst);
    let mut rng = Rng::of(seed, number);
    thread::sleep(Duration::from_millis(rng.within(0, 40)));
    let page = exchange.target().to_owned();
    let mut body = format!("{page} {number} ").into_bytes();
    let filler = rng.pick(&[0_usize, 10, 5000, 60_000, 300_000]);
    body.resize(body.len() + filler, b'.');
    let control = rng.pick(&[
        "",
        "",
        "",
        "Cache-Control: private\r\n",
        "Cache-Control: max-age=1\r\n",
        "ETag: \"e\"\r\n",
    ]);
    let kind = rng.within(0, 100);
    let is_head = exchange.head.first_line.starts_with("HEAD");
    let length = body.len();
    let (head, mut body) = match kind {
        0..12 => {
            let head = "503 Service Unavailable\r\nContent-Length: 4";
            (head.to_owned(), b"busy".to_vec())
        }
        12..18 => return Exchange::close(),
        18..24 if !is_head => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", length + 1);
            exchange.send([head.as_bytes(), &body].concat())?;
            return Exchange::close();
        }
        _ if kind.is_multiple_of(2) => {
            let head = format!("200 OK\r\n{control}Transfer-Encoding: chunked");
            let size = format!("{length:x}\r\n");
            (head, [size.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat())
        }
        _ => (format!("200 OK\r\n{control}Content-Length: {length}"), body),
    };
    if is_head {
        body.clear();
    }
    // The response is complete once its last byte is sent, so this instant is not later.
    exchange.send([b"HTTP/1.1 ", head.as_bytes(), b"\r\n\r\n", &body].concat())?;
    let mut complete = sent.complete.lock().expect("no panic");
    complete.push((number, now()));
    Ok(())
}

/// Runs a client until it is stopped. Returns the number of responses it has checked.
fn ask(to: SocketAddr, nth: u64, seed: u64, sent: &Sent, stop: &AtomicBool) -> u64 {
    let mut rng = Rng::of(seed, 10_000 + nth);
    let mut checked = 0;
    while !stop.load(Ordering::SeqCst) {
        let page = format!("/page/{}", rng.within(0, PAGES));
        let method = if rng.percent(12) { "HEAD" } else { "GET" };
        let fields = rng.pick(&[
            "",
            "",
            "",
            "",
            "Range: bytes=0-3\r\n",
            "If-None-Match: \"e\"\r\n",
            "Cookie: a=b\r\n",
            "Cache-Control: no-store\r\n",
        ]);
        let mut client = Client::connect(to);
        let asked = now();
        client.send(request(method, &page, fields).as_bytes());
        if rng.percent(20) {
            thread::sleep(Duration::from_millis(rng.within(0, 60)));
            if rng.percent(50) {
                // The client disconnects in the middle of the response.
                let _some = client.sender().read(&mut [0; 100]);
            }
            continue;
        }
        if method == "HEAD" {
            // A request that fails at the origin may get only a failure response.
            let head = client.head();
            let is_known = |status| head.first_line.contains(status);
            let statuses = [" 200 ", " 304 ", " 502 ", " 503 "];
            assert!(statuses.into_iter().any(is_known), "{head:?}");
            continue;
        }
        if rng.percent(10) {
            thread::sleep(Duration::from_millis(rng.within(0, 300)));
        }
        // A leader's response may be broken off.
        let Ok(answer) = client.try_answer() else {
            continue;
        };
        match answer.status {
            200 => {
                let text = answer.text();
                let mut words = text.split(' ');
                assert_eq!(words.next(), Some(&*page), "an answer to another request");
                let number: u64 = words
                    .next()
                    .and_then(|it| it.parse().ok())
                    .expect("a number");
                let complete = sent.complete.lock().expect("no panic");
                let found = complete.iter().rev().find(|(it, _)| *it == number);
                // A response that is not recorded yet has been completed just now.
                if let Some((_, at)) = found {
                    let age = asked.saturating_duration_since(*at);
                    assert!(age <= OLDEST + SLACK, "an answer of {age:?} before");
                }
                checked += 1;
            }
            206 => assert_eq!(answer.text(), "/pag"),
            304 => assert_eq!(fields, "If-None-Match: \"e\"\r\n"),
            502 | 503 => {}
            status => panic!("{status}"),
        }
    }
    checked
}

#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn any_clients_and_any_origin_get_one_answer_each_and_leave_nothing_behind() {
    let _half = half_alone();
    let seed = std::env::var("DRIP_SEED")
        .ok()
        .and_then(|it| it.parse().ok());
    let seed: u64 = seed.unwrap_or(33);
    let sent = Arc::<Sent>::default();
    let of_origin = Arc::clone(&sent);
    let origin = Origin::answering(move |exchange| answer(exchange, &of_origin, seed));
    let gate = "max_in_flight = 4\nrate = \"400r/s\"\nqueue = 100\nresponse_timeout = \"5s\"";
    let text = |collapse: &str| {
        let size = "shared_answers = \"300KB\"\n";
        format!("{size}{}", file_with(origin.address, gate, "", collapse))
    };
    let gateway = Gateway::start(&text("keep = \"200ms\"\nstale = \"1s\""));
    let (at, stop) = (gateway.address(), AtomicBool::new(false));
    let checked: u64 = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|nth| {
                let (sent, stop) = (&sent, &stop);
                scope.spawn(move || ask(at, nth, seed, sent, stop))
            })
            .collect();
        let (until, mut rng) = (now() + SPAN, Rng::of(seed, 77));
        while now() < until {
            thread::sleep(Duration::from_millis(rng.within(200, 900)));
            let next = rng.pick(&[
                "",
                "keep = \"500ms\"",
                "keep = \"100ms\"\nstale = \"1500ms\"",
                "stale = \"1s\"\nmax_size = \"20KB\"",
                "vary = []",
            ]);
            gateway.site.write(&text(next));
            gateway.signal(Signal::HUP);
        }
        stop.store(true, Ordering::SeqCst);
        let clients = clients.into_iter().map(thread::ScopedJoinHandle::join);
        clients.map(|it| it.expect("each answer is right")).sum()
    });
    assert!(checked > 500, "{checked}");
    eventually("no request waits, and no permit is taken", || {
        let metrics = gateway.metrics();
        let count = |name| metrics.count(name, &[]);
        count("drip_shared_waiting") == 0
            && count("drip_origin_in_flight") == 0
            && count("drip_origin_queue_depth") == 0
    });
    let kept = gateway.count("drip_shared_answers_bytes", &[]);
    assert!(kept <= 300_000, "{kept}");
    assert!(!gateway.log().contains("panic"), "{}", gateway.log());
}
