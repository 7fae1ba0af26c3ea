//! The origin fails, and the last good answer serves on.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::{ask, at_once, file, file_with, how, wait_until_passed};
use crate::support::{Answer, Exchange, Gateway, MS, Origin, eventually, fetch_with, now};

const HOUR: &str = "keep = \"1s\"\nstale = \"1h\"";

/// It answers nothing, and closes the connection.
const CLOSES: u16 = 0;
/// It answers nothing for longer than anybody waits.
const HANGS: u16 = 1;
/// For how long.
const HANG: Duration = Duration::from_secs(5);

/// An origin whose answers the test chooses: a status, [`CLOSES`] or [`HANGS`].
struct Moody {
    origin: Origin,
    mood: Arc<AtomicU16>,
    /// How many requests it has now, and the most that it had at once.
    now: Arc<Mutex<(usize, usize)>>,
}

impl Moody {
    /// `fields`: lines of the answers that are good.
    fn start(fields: &'static str) -> Self {
        Self::at("127.0.0.1:0", fields)
    }

    fn at(address: &str, fields: &'static str) -> Self {
        let mood = Arc::new(AtomicU16::new(200));
        let now = Arc::<Mutex<(usize, usize)>>::default();
        let (seen, counted) = (Arc::clone(&mood), Arc::clone(&now));
        let nth = AtomicU16::new(0);
        let origin = Origin::at(address, move |exchange: &mut Exchange| {
            {
                let mut now = counted.lock().expect("no panic");
                now.0 += 1;
                now.1 = now.1.max(now.0);
            }
            let nth = nth.fetch_add(1, Ordering::SeqCst) + 1;
            let answered = match seen.load(Ordering::SeqCst) {
                CLOSES => Exchange::close(),
                HANGS => {
                    thread::sleep(HANG);
                    Exchange::close()
                }
                status => {
                    let body = format!("answer {nth}");
                    let fields = if status == 200 { fields } else { "" };
                    let length = body.len();
                    let head = format!("HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\n");
                    exchange.send(format!("{head}{fields}\r\n{body}").as_bytes())
                }
            };
            counted.lock().expect("no panic").0 -= 1;
            answered
        });
        Self { origin, mood, now }
    }

    fn is(&self, mood: u16) {
        self.mood.store(mood, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.origin.arrivals().len()
    }

    fn most_at_once(&self) -> usize {
        self.now.lock().expect("no panic").1
    }
}

fn get(at: SocketAddr) -> Answer {
    fetch_with(at, "/a", "")
}

/// Asks for the first time, and waits until the answer is not fresh any more.
fn outlive(at: SocketAddr) -> Instant {
    let first = get(at);
    let began = now();
    assert_eq!((first.status, how(&first)), (200, "leader"), "{first:?}");
    assert_eq!(first.text(), "answer 1");
    thread::sleep(1200 * MS);
    began
}

/// Fails unless the answer is the first one, with its age.
fn is_first(answer: &Answer, since: Instant) {
    assert_eq!((answer.status, how(answer)), (200, "stale"), "{answer:?}");
    assert_eq!(answer.text(), "answer 1");
    let age = answer.number("age");
    let most = since.elapsed().as_secs() + 1;
    assert!((1..=most).contains(&age), "{age} of {most}");
}

/// Asks until the answer is another one than the first.
fn recovers(gateway: &Gateway) {
    let mut last = String::new();
    eventually("the origin's new answer is there", || {
        let answer = get(gateway.address());
        assert_eq!(answer.status, 200, "{answer:?}");
        last = answer.text();
        last != "answer 1" && matches!(how(&answer), "kept" | "leader" | "follower")
    });
    assert!(last.starts_with("answer "), "{last}");
}

#[test]
fn whatever_fails_at_the_origin_the_last_good_answer_serves_until_it_recovers() {
    let if_error = "Cache-Control: max-age=1, stale-if-error=600\r\n";
    let cases = [
        (500, "", HOUR),
        (599, "", HOUR),
        (CLOSES, "", HOUR),
        (HANGS, "", HOUR),
        (503, if_error, "keep = \"1h\""),
    ];
    at_once(&cases, |&(mood, fields, collapse)| {
        let origin = Moody::start(fields);
        let limit = "response_timeout = \"1s\"";
        let gateway = Gateway::start(&file_with(origin.origin.address, limit, "", collapse));
        let at = gateway.address();
        let began = outlive(at);
        origin.is(mood);
        let before = origin.asked();
        for _ in 0..3 {
            is_first(&get(at), began);
        }
        // One asks the origin at first, and perhaps one more behind the others.
        let asked = origin.asked() - before;
        assert!((1..=2).contains(&asked), "{mood}: {asked}");
        origin.is(200);
        recovers(&gateway);
    });
}

#[test]
fn an_origin_that_refuses_connections_is_replaced_by_its_last_good_answer() {
    let origin = Moody::start("");
    let address = origin.origin.address;
    let gateway = Gateway::start(&file(address, HOUR));
    let at = gateway.address();
    // The connection ends with the answer's kind of mood, so that none is kept open.
    let began = outlive(at);
    origin.is(CLOSES);
    is_first(&get(at), began);
    drop(origin);
    for _ in 0..12 {
        is_first(&get(at), began);
        thread::sleep(150 * MS);
    }
    let again = Moody::at(&address.to_string(), "");
    eventually("what it says now is there", || {
        let answer = get(at);
        assert_eq!(answer.status, 200, "{answer:?}");
        how(&answer) == "kept"
    });
    assert!(again.asked() > 0);
}

#[test]
fn one_request_at_a_time_asks_an_origin_that_fails() {
    let origin = Moody::start("");
    let gateway = Gateway::start(&file(origin.origin.address, HOUR));
    let at = gateway.address();
    let began = outlive(at);
    for mood in [503, HANGS] {
        let (before, since) = (origin.asked(), now());
        origin.is(mood);
        is_first(&get(at), began);
        let clients: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(move || {
                    let mut longest = Duration::ZERO;
                    for _ in 0..15 {
                        let asked = now();
                        is_first(&get(at), began);
                        longest = longest.max(asked.elapsed());
                        thread::sleep(100 * MS);
                    }
                    longest
                })
            })
            .collect();
        let longest = clients.into_iter().map(|it| it.join().expect("no panic"));
        let longest = longest.max().expect("clients");
        // It is fetched anew behind them, and nobody waits for that.
        assert!(longest < HANG.mul_f32(0.8), "{longest:?}");
        let asked = origin.asked() - before;
        let most = usize::try_from(since.elapsed().as_secs()).expect("few") + 1;
        assert!((1..=most).contains(&asked), "{asked} of {most}");
    }
    assert_eq!(origin.most_at_once(), 1);
}

#[test]
fn a_full_gate_gives_the_last_good_answer_too() {
    let origin = Moody::start("");
    let limits = "max_in_flight = 1\nqueue_timeout = \"0\"";
    let gateway = Gateway::start(&file_with(origin.origin.address, limits, "", HOUR));
    let at = gateway.address();
    let began = outlive(at);
    origin.is(HANGS);
    let _held = ask(at, "/other", "");
    origin.origin.wait_for(2);
    assert_eq!(fetch_with(at, "/third", "").status, 503);
    is_first(&get(at), began);
    assert_eq!(origin.asked(), 2);
}

/// A Retry-After of the origin that is an order makes nobody wait who has a stale answer.
#[test]
fn while_the_origin_has_ordered_a_pause_the_last_good_answer_serves_at_once() {
    let is_busy = Arc::new(AtomicBool::new(false));
    let now_busy = Arc::clone(&is_busy);
    let origin = Origin::answering(move |exchange| {
        if now_busy.load(Ordering::SeqCst) {
            let head = "HTTP/1.1 503 Busy\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
            exchange.send(head.as_bytes())
        } else {
            exchange.reply(b"answer 1")
        }
    });
    let gate = "rate = \"100r/s\"\nqueue_timeout = \"1h\"";
    let backoff = "[origins.app.backoff]\nretry_after = true\nmax_pause = \"1h\"";
    let file = file_with(origin.address, &format!("{gate}\n{backoff}"), "", HOUR);
    let gateway = Gateway::start(&file);
    let at = gateway.address();
    let began = outlive(at);
    is_busy.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        is_first(&get(at), began);
        thread::sleep(1100 * MS);
    }
    assert_eq!(origin.arrivals().len(), 2, "nothing is sent in the pause");

    // The pause was that of the setting.
    let waits = ask(at, "/b", "");
    wait_until_passed(&gateway, 5);
    is_busy.store(false, Ordering::SeqCst);
    gateway
        .site
        .write(&file.replace("retry_after = true", "retry_after = false"));
    let mut waits = waits;
    assert_eq!(waits.answer().status, 200, "the pause has ended");
}

#[test]
fn without_stale_and_beyond_it_the_failure_is_told() {
    let cases = [
        ("", "keep = \"1s\""),
        ("", "keep = \"1s\"\nstale = \"1s\""),
        ("Cache-Control: must-revalidate\r\n", HOUR),
        ("Cache-Control: max-age=60, proxy-revalidate\r\n", HOUR),
        ("Cache-Control: s-maxage=60\r\n", HOUR),
        (
            "Cache-Control: max-age=1, must-revalidate, stale-if-error=60\r\n",
            HOUR,
        ),
        (
            "Cache-Control: max-age=1, must-revalidate, stale-while-revalidate=60\r\n",
            "keep = \"1h\"",
        ),
        (
            "Cache-Control: max-age=1, stale-if-error=1\r\n",
            "keep = \"1h\"",
        ),
        ("Cache-Control: max-age=1\r\n", "keep = \"1h\""),
    ];
    at_once(&cases, |(fields, collapse)| {
        let origin = Moody::start(fields);
        let gateway = Gateway::start(&file(origin.origin.address, collapse));
        let at = gateway.address();
        outlive(at);
        origin.is(503);
        thread::sleep(1500 * MS);
        let answer = get(at);
        assert_eq!(answer.status, 503, "{fields} {collapse}: {answer:?}");
        assert_eq!(answer.text(), "answer 2");
        assert_eq!(answer.field("age"), None);
        origin.is(200);
        let answer = get(at);
        assert_eq!(answer.text(), "answer 3", "nobody is told of it later");
    });
}

#[test]
fn stale_while_revalidate_answers_at_once_and_fetches_one_behind() {
    let origin = Moody::start("Cache-Control: max-age=1, stale-while-revalidate=600\r\n");
    let gateway = Gateway::start(&file(origin.origin.address, "keep = \"1h\""));
    let at = gateway.address();
    let began = outlive(at);
    origin.is(HANGS);
    let (asked, before) = (now(), origin.asked());
    for _ in 0..10 {
        is_first(&get(at), began);
    }
    assert!(asked.elapsed() < HANG, "{:?}", asked.elapsed());
    origin.origin.wait_for(before + 1);
    assert_eq!(origin.asked(), before + 1);
    origin.is(200);
    recovers(&gateway);
}

#[test]
fn those_who_follow_one_that_fails_get_the_last_good_answer() {
    let origin = Moody::start("");
    let limit = "response_timeout = \"2s\"";
    let gateway = Gateway::start(&file_with(origin.origin.address, limit, "", HOUR));
    let at = gateway.address();
    let began = outlive(at);
    origin.is(HANGS);
    let mut clients = vec![ask(at, "/a", "")];
    origin.origin.wait_for(2);
    clients.extend((0..5).map(|_| ask(at, "/a", "")));
    let mut part = ask(at, "/a", "Range: bytes=0-5\r\n");
    wait_until_passed(&gateway, 8);
    for mut client in clients {
        is_first(&client.answer(), began);
    }
    let part = part.answer();
    assert_eq!((part.status, part.text().as_str()), (206, "answer"));
    assert_eq!(how(&part), "stale");
    assert_eq!(origin.asked(), 2);
}

/// What the origin refuses is an answer, and no trouble.
#[test]
fn an_answer_that_refuses_replaces_the_last_good_one() {
    at_once(&[404, 410], |&status| {
        let origin = Moody::start("");
        let gateway = Gateway::start(&file(origin.origin.address, HOUR));
        let at = gateway.address();
        outlive(at);
        origin.is(status);
        let answer = get(at);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (status, "answer 2")
        );
        assert_ne!(how(&answer), "stale");
        // The good answer of before is not the last one any more.
        origin.is(503);
        thread::sleep(1200 * MS);
        let answer = get(at);
        let found = (answer.status, how(&answer));
        assert_eq!(found, (status, "stale"), "{answer:?}");
    });
}

/// A status that may concern one client ends the last good answer once a second client gets one.
#[test]
fn what_two_clients_are_refused_ends_the_last_good_answer() {
    at_once(&[403, 429, 302], |&status| {
        let origin = Moody::start("");
        let file = file(origin.origin.address, HOUR);
        let gateway = Gateway::start(&format!("trusted_proxies = [\"127.0.0.1\"]\n{file}"));
        let at = gateway.address();
        let get_as = |client: &str| {
            let fields = format!("X-Forwarded-For: {client}\r\n");
            fetch_with(at, "/a", &fields).status
        };
        let began = outlive(at);
        origin.is(status);
        for _ in 0..2 {
            assert_eq!(get_as("10.0.0.1"), status);
        }
        origin.is(503);
        is_first(&get(at), began);
        origin.is(status);
        // Its failure was a second ago, so one asks the origin behind the answer.
        eventually("the origin is not in trouble any more", || {
            get_as("10.0.0.1") == status
        });
        assert_eq!(get_as("10.0.0.2"), status);
        origin.is(503);
        assert_eq!(get(at).status, 503, "{status}");
    });
}
