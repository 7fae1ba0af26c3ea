//! Tests of clients that read little of an HTTP/2 origin's responses.
//!
//! Each costs bounded memory, and other requests on the connection to the origin continue.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use crate::http2::{GET, ask};
use crate::support::frames::{
    DATA, END_STREAM, Frames, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, Outcome, RST_STREAM, get,
    reset, settings, window_update, without_window,
};
use crate::support::night::{day_or_night, some_of};
use crate::support::others::Others;
use crate::support::stream_origin::{STREAM_WINDOW, StreamOrigin, content};
use crate::support::{Gateway, PATIENCE, Raw, one_h2c_origin};

const MB: u64 = 1 << 20;
/// Number of bytes that no client's kernel buffers alone.
const LARGE: usize = 32 << 20;

fn drip(origin: &StreamOrigin) -> Gateway {
    Gateway::start(&one_h2c_origin(origin.address, "workers = 1", ""))
}

/// Fails unless HTTP/1 and HTTP/2 requests are answered completely, and no connection is lost.
fn check_others(gateway: &Gateway, origin: &StreamOrigin, name: &str) {
    let path = "/16384/20";
    let whole = content(16_384 * 20);
    for _ in 0..2 {
        let answer = ask(gateway, GET);
        assert_eq!(answer.status(), 200, "{name}");
        assert_eq!(answer.body, b"ok", "{name}");
        let answer = ask(
            gateway,
            &format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"),
        );
        assert!(answer.body == whole, "{name}: {} bytes", answer.body.len());
        let mut client = Frames::connect(gateway.address());
        let window = [
            settings(&[(INITIAL_WINDOW_SIZE, 1 << 20)]),
            window_update(0, 1 << 20),
        ];
        client.send(window.concat()).expect("the gateway reads");
        client.send(get(1, path)).expect("the gateway reads");
        assert_eq!(client.outcome(1), Outcome::Status(200), "{name}");
        let body = client.body(1).expect("a whole body");
        assert!(body == whole, "{name}: {} bytes", body.len());
    }
    assert_eq!(origin.errors(), [""; 0], "{name}");
}

#[test]
fn clients_that_take_nothing_hold_up_no_others() {
    let origin = StreamOrigin::start();
    let gateway = drip(&origin);
    check_others(&gateway, &origin, "before");
    let others = Others::start(&gateway);
    let path = format!("/16384/{}", LARGE / 16_384);
    // Over HTTP/2: more clients than a connection's window of 1 MB would be enough for.
    let over_http_2 = without_window(&gateway, &path, 10);
    origin.wait_until_stuck(10 * STREAM_WINDOW);
    check_others(&gateway, &origin, "HTTP/2");
    // Over HTTP/1, the kernel takes some of it first.
    let over_http_1: Vec<_> = (0..10)
        .map(|_| {
            let mut client = Raw::connect(gateway.address());
            client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
            client
        })
        .collect();
    origin.wait_until_stuck(20 * STREAM_WINDOW);
    check_others(&gateway, &origin, "HTTP/1");
    others.check();
    drop((over_http_1, over_http_2));
    check_others(&gateway, &origin, "afterwards");
}

/// Checks that small unread events end no connection and are delivered completely later.
fn check_events(size: usize, path: &str, streams: u32) {
    let name = format!("{size} bytes, {path}");
    let all = streams as usize;
    let origin = StreamOrigin::start();
    let gateway = drip(&origin);
    check_others(&gateway, &origin, &name);
    let before = (gateway.peak_memory(), origin.sent());
    let mut client = without_window(&gateway, path, streams);
    origin.wait_until_stuck(before.1 + all * (STREAM_WINDOW - size));
    check_others(&gateway, &origin, &name);
    // As frames they would take 256 bytes each.
    let grown = gateway.peak_memory() - before.0;
    assert!(grown < 20 * MB, "{name}: {grown} bytes more");
    // The log has no failure of the origin.
    assert!(!gateway.log().contains("WARN"), "{}", gateway.log());

    let mut came = vec![Vec::new(); all];
    let mut trailers = 0;
    for nth in 0..streams {
        let more = window_update(2 * nth + 1, 1 << 24);
        client.send(more).expect("the gateway reads");
    }
    client
        .send(window_update(0, 1 << 28))
        .expect("the gateway reads");
    while trailers < all {
        let next = client.next().expect("a frame");
        let nth = (next.stream / 2) as usize;
        match next.kind {
            DATA => came[nth].extend(next.payload),
            HEADERS => trailers += usize::from(next.flags & END_STREAM != 0),
            _ => panic!("{name}: {next:?}"),
        }
    }
    let (whole, size) = (content(came[0].len()), came[0].len());
    assert!(size > STREAM_WINDOW, "{name}: {size} bytes");
    assert!(came.iter().all(|came| *came == whole), "{name}");
    check_others(&gateway, &origin, &name);
}

#[test]
fn small_events_that_nobody_reads_end_no_connection_and_none_is_lost() {
    let sizes = [(4, 2), (50, 20), (255, 20), (3000, 20)];
    for (size, streams) in some_of(sizes, 4) {
        let path = format!("/{size}/{}", STREAM_WINDOW / size + 1000);
        check_events(size, &path, streams);
    }
}

/// Unread streams end, and do not count as failures of the origin.
#[test]
fn streams_that_nobody_reads_are_no_failures_of_the_origin_and_slow_no_gate_down() {
    const STREAMS: u32 = 20;
    let origin = StreamOrigin::start();
    let gateway = Gateway::start(&format!(
        "workers = 1\nbody_timeout = \"1s\"\n\
         [origins.app]\nservers = [\"h2c://{0}\"]\nmax_fails = 1\nrate = \"10000r/s\"\n\
         backoff = {{ on = [\"4xx\", \"5xx\", \"timeout\", \"connect\"], trip = \"1%\" }}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n",
        origin.address
    ));
    for path in ["/50/100000", "/16384/1000"] {
        let mut client = without_window(&gateway, path, STREAMS);
        let mut ended = 0;
        while ended < STREAMS {
            let next = client.next().expect("a frame");
            assert_ne!(next.kind, GOAWAY, "{path}");
            ended += u32::from(next.kind == RST_STREAM);
        }
        // Enough for a window in which failures are counted, and a second for it to end.
        check_others(&gateway, &origin, path);
        thread::sleep(Duration::from_millis(1100));
        check_others(&gateway, &origin, path);
    }
    let metrics = gateway.metrics();
    let of = |name, label| metrics.count(name, &[("origin", "app"), label]);
    for reason in ["trouble", "slow", "retry_after"] {
        let count = of("drip_origin_backoffs_total", ("reason", reason));
        assert_eq!(count, 0, "{reason}");
    }
    assert_eq!(of("drip_origin_rate", ("of", "now")), 10_000);
    assert_eq!(of("drip_origin_requests_total", ("outcome", "broken")), 0);
    assert_eq!(metrics.value("drip_origin_healthy", &[]), Some(1.0));
}

#[test]
fn small_events_behind_interim_responses_that_nobody_reads_end_no_connection() {
    check_events(50, &format!("/hint/50/{}", STREAM_WINDOW / 50 + 1000), 20);
}

#[test]
fn small_events_in_great_number_reach_a_client_that_reads() {
    let origin = StreamOrigin::start();
    let gateway = drip(&origin);
    for size in [1, 10, 50] {
        let path = format!("/{size}/30000");
        let mut client = Raw::connect(gateway.address());
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let answer = client.try_answer_to("GET", PATIENCE).expect("an answer");
        assert!(answer.body == content(size * 30_000), "{size}");
    }
    check_others(&gateway, &origin, "afterwards");
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_congested_connection_gets_no_more_requests_until_its_clients_have_taken_some() {
    let origin = StreamOrigin::start();
    let gateway = drip(&origin);
    let path = format!("/16384/{}", LARGE / 16_384);
    let first = without_window(&gateway, &path, 15);
    origin.wait_until_stuck(15 * STREAM_WINDOW);
    check_others(&gateway, &origin, "below the bound");
    assert_eq!(origin.connections(), 1);
    let second = without_window(&gateway, &path, 10);
    origin.wait_until_stuck(25 * STREAM_WINDOW);
    check_others(&gateway, &origin, "past the bound");
    assert_eq!(origin.connections(), 2);
    // The number of connections grows with the waiting bytes, not with the requests.
    for _ in 0..10 {
        check_others(&gateway, &origin, "past the bound");
    }
    assert_eq!(origin.connections(), 2);
    drop((first, second));
    check_others(&gateway, &origin, "afterwards");
    assert_eq!(origin.connections(), 2);
}

#[test]
fn a_congested_connection_is_used_where_the_server_accepts_no_other() {
    let origin = StreamOrigin::accepting(1);
    let gateway = drip(&origin);
    let path = format!("/16384/{}", LARGE / 16_384);
    let _stuck = without_window(&gateway, &path, 20);
    origin.wait_until_stuck(20 * STREAM_WINDOW);
    check_others(&gateway, &origin, "on the only connection");
    assert_eq!(origin.connections(), 1);
}

fn check_cancelled(path: &str) {
    let origin = StreamOrigin::start();
    let gateway = drip(&origin);
    for round in 0..day_or_night(4, 30) {
        let mut client = without_window(&gateway, path, 100);
        client
            .send(window_update(0, 1 << 28))
            .expect("the gateway reads");
        // Heads arrive in any order.
        let mut answered = BTreeSet::new();
        while answered.len() < 100 {
            let next = client.next().expect("a frame");
            if next.kind == HEADERS {
                assert_eq!(next.status(), Some(200), "{path}: {round}");
                assert!(answered.insert(next.stream), "{path}: {round}");
                client
                    .send(reset(next.stream, 8))
                    .expect("the gateway reads");
            } else {
                assert!(![GOAWAY, RST_STREAM].contains(&next.kind), "{next:?}");
            }
        }
    }
    check_others(&gateway, &origin, path);
    assert_eq!(origin.connections(), 1, "{path}");
}

/// Small events of cancelled requests end no connection.
///
/// h2 counts small pieces, also those of requests that have ended.
#[test]
fn small_events_of_requests_that_clients_cancel_end_no_connection() {
    check_cancelled("/50/100000");
}
