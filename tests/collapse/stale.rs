//! Tests of `stale`: the origin fails, and the last good response is served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{ask, file, file_with, how, wait_until_passed};
use crate::support::{
    Answer, Exchange, Gateway, MS, Origin, eventually, fetch_with, now, side_by_side,
};

const HOUR: &str = "keep = \"1s\"\nstale = \"1h\"";

/// Closes the connection without a response.
const CLOSES: u16 = 0;
/// Sends nothing for longer than any client waits.
const HANGS: u16 = 1;
/// Duration of a hang.
const HANG: Duration = Duration::from_secs(3);

/// An origin whose responses the test chooses: a status, [`CLOSES`] or [`HANGS`].
struct ControlledOrigin {
    origin: Origin,
    mood: Arc<AtomicU16>,
}

impl ControlledOrigin {
    /// Starts the origin. `fields`: lines of good responses.
    fn start(fields: &'static str) -> Self {
        let mood = Arc::new(AtomicU16::new(200));
        let seen = Arc::clone(&mood);
        let nth = AtomicU16::new(0);
        let origin = Origin::answering(move |exchange: &mut Exchange| {
            let nth = nth.fetch_add(1, Ordering::SeqCst) + 1;
            match seen.load(Ordering::SeqCst) {
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
            }
        });
        Self { origin, mood }
    }

    fn is(&self, mood: u16) {
        self.mood.store(mood, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.origin.arrivals().len()
    }
}

fn get(at: SocketAddr) -> Answer {
    fetch_with(at, "/a", "")
}

/// Sends the first request, and waits until its response is not fresh any more.
fn outlive(at: SocketAddr) -> Instant {
    let first = get(at);
    let began = now();
    assert_eq!((first.status, how(&first)), (200, "leader"), "{first:?}");
    assert_eq!(first.text(), "answer 1");
    thread::sleep(1200 * MS);
    began
}

/// Fails unless the response is the first one, with its age.
fn is_first(answer: &Answer, since: Instant) {
    assert_eq!((answer.status, how(answer)), (200, "stale"), "{answer:?}");
    assert_eq!(answer.text(), "answer 1");
    let age = answer.number("age");
    let most = since.elapsed().as_secs() + 1;
    assert!((1..=most).contains(&age), "{age} of {most}");
}

/// Sends requests until the response is a new one.
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
    side_by_side(&cases, |&(mood, fields, collapse)| {
        let origin = ControlledOrigin::start(fields);
        let limit = "response_timeout = \"1s\"";
        let gateway = Gateway::start(&file_with(origin.origin.address, limit, "", collapse));
        let at = gateway.address();
        let began = outlive(at);
        origin.is(mood);
        let before = origin.asked();
        for _ in 0..3 {
            is_first(&get(at), began);
        }
        // One request goes to the origin first, and perhaps one more behind the others.
        let asked = origin.asked() - before;
        assert!((1..=2).contains(&asked), "{mood}: {asked}");
        origin.is(200);
        recovers(&gateway);
    });
}

#[test]
fn a_full_gate_gives_the_last_good_answer_too() {
    let origin = ControlledOrigin::start("");
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

/// While the origin's Retry-After pauses requests, the last good response is served at once.
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
fn stale_while_revalidate_answers_at_once_and_fetches_one_behind() {
    let origin =
        ControlledOrigin::start("Cache-Control: max-age=1, stale-while-revalidate=600\r\n");
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

/// A refusal by the origin is a response, not a failure.
#[test]
fn an_answer_that_refuses_replaces_the_last_good_one() {
    let origin = ControlledOrigin::start("");
    let gateway = Gateway::start(&file(origin.origin.address, HOUR));
    let at = gateway.address();
    outlive(at);
    origin.is(404);
    let answer = get(at);
    assert_eq!((answer.status, &*answer.text()), (404, "answer 2"));
    assert_ne!(how(&answer), "stale");
    // The earlier good response is not the last one any more.
    origin.is(503);
    thread::sleep(1200 * MS);
    let answer = get(at);
    assert_eq!((answer.status, how(&answer)), (404, "stale"), "{answer:?}");
}

/// A refusal that two clients get replaces the last good response.
///
/// Until then, the status may concern only one client.
#[test]
fn what_two_clients_are_refused_ends_the_last_good_answer() {
    side_by_side(&[403, 302], |&status| {
        let origin = ControlledOrigin::start("");
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
        // The failure was a second ago, so one request goes to the origin behind the response.
        eventually("the origin is not in trouble any more", || {
            get_as("10.0.0.1") == status
        });
        assert_eq!(get_as("10.0.0.2"), status);
        origin.is(503);
        assert_eq!(get(at).status, 503, "{status}");
    });
}
