//! Bodies over HTTP/2 that are not as long as their head says, to origins over HTTP/1.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::frames::{DATA, END_STREAM, Frames, Outcome, frame, head, reset};
use crate::support::{Gateway, Origin, eventually, fetch, one_origin};

/// The targets of the requests whose whole body came to the origin.
type Whole = Arc<Mutex<Vec<String>>>;

fn drip() -> (Origin, Whole, Gateway) {
    let whole = Whole::default();
    let to_see = Arc::clone(&whole);
    let origin = Origin::answering(move |exchange| {
        let body = exchange.body()?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let seen = format!("{} {body}", exchange.target());
        to_see.lock().expect("no panic").push(seen);
        exchange.reply(b"ok")
    });
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", ""));
    (origin, whole, gateway)
}

fn post(length: &str) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", "/case"),
        ("content-length", length),
    ];
    head(1, 0, &fields)
}

#[test]
fn a_body_that_is_shorter_or_longer_than_told_is_never_taken_for_a_whole_one() {
    type Pieces = &'static [(u8, &'static str)];
    let (origin, whole, gateway) = drip();
    let cases: [(&str, &str, Pieces); 11] = [
        ("shorter", "5", &[(END_STREAM, "hell")]),
        (
            "shorter, the end alone",
            "5",
            &[(0, "hell"), (END_STREAM, "")],
        ),
        ("nothing", "5", &[(END_STREAM, "")]),
        (
            "longer",
            "5",
            &[(
                END_STREAM,
                "helloGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n",
            )],
        ),
        (
            "longer, in two",
            "5",
            &[(0, "hell"), (END_STREAM, "oGET /smuggled HTTP/1.1\r\n\r\n")],
        ),
        (
            "none told",
            "0",
            &[(END_STREAM, "GET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n")],
        ),
        ("a list", "5, 5", &[(END_STREAM, "hello")]),
        ("a sign", "+5", &[(END_STREAM, "hello")]),
        ("negative", "-5", &[(END_STREAM, "hello")]),
        ("hexadecimal", "0x5", &[(END_STREAM, "hello")]),
        ("empty", "", &[(END_STREAM, "hello")]),
    ];
    for (name, length, pieces) in cases {
        let mut client = Frames::connect(gateway.address());
        let mut bytes = post(length);
        for (flags, piece) in pieces {
            bytes.extend(frame(DATA, *flags, 1, piece));
        }
        client.send(bytes).expect("the gateway reads");
        let outcome = client.outcome(1);
        let is_refused = matches!(outcome, Outcome::Status(400..=499) | Outcome::Reset(_));
        assert!(is_refused, "{name}: {outcome:?}");
        assert_eq!(fetch(gateway.address(), "/next").status, 200, "{name}");
        let whole: Vec<_> = whole.lock().expect("no panic").drain(..).collect();
        assert_eq!(whole, ["/next "], "{name}");
    }
    let targets = origin.arrivals().into_iter().map(|arrival| arrival.target);
    assert!(
        targets.clone().all(|it| it == "/next" || it == "/case"),
        "{:?}",
        targets.collect::<Vec<_>>()
    );
}

#[test]
fn what_comes_after_the_told_end_spoils_no_other_request() {
    // The origin has the whole body before the client sends more.
    let (origin, whole, gateway) = drip();
    for more in [true, false] {
        let mut client = Frames::connect(gateway.address());
        client
            .send([post("5"), frame(DATA, 0, 1, "hello")].concat())
            .expect("it reads");
        eventually("the origin has it", || {
            !whole.lock().expect("no panic").is_empty()
        });
        let rest = if more {
            frame(
                DATA,
                END_STREAM,
                1,
                "GET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n",
            )
        } else {
            reset(1, 8)
        };
        // The response may have come, and the stream be over.
        let _sent = client.send(rest);
        thread::sleep(Duration::from_millis(100));
        for _ in 0..5 {
            assert_eq!(fetch(gateway.address(), "/next").status, 200);
        }
        let seen: Vec<_> = whole.lock().expect("no panic").drain(..).collect();
        assert_eq!(seen[0], "/case hello");
        assert!(seen[1..].iter().all(|it| it == "/next "), "{seen:?}");
    }
    let targets = origin.arrivals().into_iter().map(|arrival| arrival.target);
    assert!(
        targets.clone().all(|it| it == "/next" || it == "/case"),
        "{:?}",
        targets.collect::<Vec<_>>()
    );
}
