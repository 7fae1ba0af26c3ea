//! Tests of the lifetime of HTTP/2 connections to origins, and of silent origins.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::http2::{GET, POST, ask, check_fine, drip};
use crate::support::frames::ok;
use crate::support::{FrameOrigin, Gateway, Raw, eventually, now};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_connection_ends_after_so_many_requests_and_at_its_age() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "keep_alive_requests = 3");
    for _ in 0..9 {
        check_fine(&gateway, "requests");
    }
    assert_eq!(origin.connections(), 3);
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "keep_alive_time = \"400ms\"");
    let begun = now();
    while begun.elapsed() < 1000 * MS {
        check_fine(&gateway, "age");
        thread::sleep(20 * MS);
    }
    let count = origin.connections();
    assert!((3..=4).contains(&count), "{count} connections");
    // Requests in flight on an old connection continue.
    let origin = FrameOrigin::start();
    let gateway = Arc::new(drip(&origin, "", "keep_alive_requests = 2"));
    let (release, is_released) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let waits = Arc::clone(&release);
    origin.next(move |to, stream| {
        while !waits.load(Ordering::SeqCst) {
            thread::sleep(5 * MS);
        }
        to.send(ok(stream))
    });
    let slow = {
        let (gateway, is_released) = (Arc::clone(&gateway), Arc::clone(&is_released));
        thread::spawn(move || {
            let answer = ask(&gateway, GET);
            assert!(is_released.load(Ordering::SeqCst));
            answer.status()
        })
    };
    eventually("the request is there", || origin.requests() == 1);
    let second = {
        let gateway = Arc::clone(&gateway);
        thread::spawn(move || ask(&gateway, GET).status())
    };
    thread::sleep(100 * MS);
    for _ in 0..2 {
        check_fine(&gateway, "beside one in flight");
    }
    is_released.store(true, Ordering::SeqCst);
    release.store(true, Ordering::SeqCst);
    assert_eq!(slow.join().expect("no panic"), 200);
    assert_eq!(second.join().expect("no panic"), 200);
}

#[test]
fn a_connection_without_requests_ends_after_its_idle_time() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "keep_alive_timeout = \"400ms\"");
    for _ in 0..3 {
        check_fine(&gateway, "in time");
        thread::sleep(200 * MS);
    }
    assert_eq!(origin.connections(), 1);
    thread::sleep(300 * MS);
    check_fine(&gateway, "too late");
    assert_eq!(origin.connections(), 2);
    eventually("both have ended", || origin.open() == 0);
}

/// Returns the status of a request, and its duration.
fn timed(gateway: &Gateway, request: &str) -> (u16, Duration) {
    let begun = now();
    let mut client = Raw::connect(gateway.address());
    client.send(request);
    let answer = client.try_answer_to("GET", Duration::from_secs(40));
    (answer.expect("an answer").status(), begun.elapsed())
}

/// A silent connection is pinged and given up, and only retryable requests are sent again.
///
/// `origin::http2::liveness` decides when it is pinged and given up.
#[test]
#[ignore = "takes 15 s: tests/run.sh long"]
fn a_silent_connection_is_pinged_and_lost_and_only_what_may_be_is_sent_again() {
    let origin = FrameOrigin::start();
    let gateway = Arc::new(drip(&origin, "", ""));
    check_fine(&gateway, "before");
    // The connection reads nothing more, and does not end.
    origin.next(|_, _| {
        thread::sleep(30_000 * MS);
        Err(io::ErrorKind::ConnectionAborted.into())
    });
    let begun = now();
    let [get, post] = [GET, POST].map(|request| {
        let gateway = Arc::clone(&gateway);
        thread::spawn(move || timed(&gateway, request))
    });
    // After a ping has had no reply for a second, other requests use another connection.
    thread::sleep(8000 * MS);
    for _ in 0..5 {
        let (status, took) = timed(&gateway, GET);
        assert!(status == 200 && took < 1000 * MS, "{status} {took:?}");
    }
    assert_eq!(origin.connections(), 2);
    let (status, took) = get.join().expect("no panic");
    assert_eq!(status, 200, "it is sent again");
    let expected = 13_000 * MS..19_000 * MS;
    assert!(expected.contains(&took), "{took:?}");
    let (status, took) = post.join().expect("no panic");
    assert_eq!(status, 502, "it is not");
    assert!(expected.contains(&took), "{took:?}");
    assert!(begun.elapsed() < 20_000 * MS);
    assert!(gateway.log().contains("no answer to a ping"));
}
