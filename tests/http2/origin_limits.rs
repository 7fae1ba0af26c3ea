//! Tests of origins that accept few requests at once, slowly, or little of a body.

use std::thread;
use std::time::Duration;

use crate::http2::{GET, ask, check_fine, drip};
use crate::support::frames::{
    DATA, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, ok, settings, window_update,
};
use crate::support::{FrameOrigin, Raw, eventually, now};

#[test]
fn one_request_at_once_on_a_connection_is_respected() {
    let origin = FrameOrigin::beginning_with(settings(&[(MAX_CONCURRENT_STREAMS, 1)]));
    let gateway = drip(&origin, "", "keep_alive = 3");
    check_fine(&gateway, "first");
    for _ in 0..10 {
        origin.next(|to, stream| {
            thread::sleep(Duration::from_millis(200));
            to.send(ok(stream))
        });
    }
    let mut clients: Vec<_> = (0..10)
        .map(|_| {
            let mut client = Raw::connect(gateway.address());
            client.send(GET);
            client
        })
        .collect();
    for client in &mut clients {
        assert_eq!(client.answer().body, b"ok");
    }
    let connections = origin.connections();
    assert!(connections > 2, "{connections} connections");
    // As many connections as `keep_alive` says stay open.
    eventually("three are kept", || origin.open() == 3);
    check_fine(&gateway, "on a kept one");
}

#[test]
fn an_origin_that_takes_no_request_is_a_504_and_its_connections_are_closed() {
    let origin = FrameOrigin::beginning_with(settings(&[(MAX_CONCURRENT_STREAMS, 0)]));
    let gateway = drip(&origin, "", "response_timeout = \"500ms\"");
    for _ in 0..5 {
        let status = ask(&gateway, GET).status();
        // The first request may be sent before the settings are known.
        assert!([200, 504].contains(&status), "{status}");
    }
    eventually("at most one is open", || origin.open() <= 1);
}

#[test]
fn an_origin_without_settings_is_asked_and_may_stay_silent() {
    let origin = FrameOrigin::beginning_with(Vec::new());
    let gateway = drip(&origin, "", "response_timeout = \"500ms\"");
    for _ in 0..2 {
        check_fine(&gateway, "it answers all the same");
    }
    origin.next(|_, _| Ok(()));
    let before = origin.connections();
    assert_eq!(ask(&gateway, GET).status(), 504);
    // A silent connection gets no more requests.
    check_fine(&gateway, "on a new one");
    assert_eq!(origin.connections() - before, 1);
}

#[test]
fn a_window_that_opens_late_takes_the_whole_body() {
    let origin = FrameOrigin::beginning_with(settings(&[(INITIAL_WINDOW_SIZE, 0)]));
    let gateway = drip(&origin, "", "");
    check_fine(&gateway, "the settings are known");
    origin.next(|to, stream| {
        thread::sleep(Duration::from_millis(300));
        let mut came = 0;
        while came < 100_000 {
            to.send(window_update(stream, 7_000))?;
            to.send(window_update(0, 7_000))?;
            let mut round = 0;
            while round < 7_000 && came + round < 100_000 {
                let next = to.next()?;
                assert_eq!(next.kind, DATA);
                round += next.payload.len();
            }
            came += round;
        }
        to.send(ok(stream))
    });
    let mut client = Raw::connect(gateway.address());
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n");
    client.send(vec![b'x'; 100_000]);
    assert_eq!(client.answer().body, b"ok");
    check_fine(&gateway, "afterwards");
}

#[test]
fn a_window_that_never_opens_is_a_504_within_the_time_for_bodies() {
    let origin = FrameOrigin::beginning_with(settings(&[(INITIAL_WINDOW_SIZE, 0)]));
    let gateway = drip(&origin, "", "body_timeout = \"500ms\"");
    check_fine(&gateway, "the settings are known");
    origin.next(|_, _| Ok(()));
    let since = now();
    let mut client = Raw::connect(gateway.address());
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(client.answer().status(), 504);
    let took = since.elapsed();
    assert!(took > Duration::from_millis(450), "{took:?}");
    check_fine(&gateway, "afterwards");
}
