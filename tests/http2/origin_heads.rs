//! Tests of heads that an origin must not send: none reaches a client over HTTP/1.

use crate::http2::{Does, check_fine, check_refused, drip};
use crate::support::FrameOrigin;
use crate::support::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, block, field, frame, head,
};

/// Returns a head of these fields, and a body that ends the stream.
fn answer(stream: u32, fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    [
        head(stream, 0, fields),
        frame(DATA, END_STREAM, stream, "evil"),
    ]
    .concat()
}

#[test]
fn a_field_that_would_be_read_otherwise_over_http_1_is_a_502() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    let fields: [(&str, &[u8], &[u8]); 23] = [
        ("line feed in a value", b"x", b"a\nset-cookie: evil=1"),
        ("CRLF in a value", b"x", b"a\r\nset-cookie: evil=1"),
        (
            "end of the head in a value",
            b"x",
            b"a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        ),
        ("carriage return in a value", b"x", b"a\rb"),
        ("null in a value", b"x", b"a\0b"),
        ("control character in a value", b"x", b"a\x01b"),
        ("DEL in a value", b"x", b"a\x7fb"),
        ("capitals in a name", b"X-Own", b"a"),
        ("a framing name in capitals", b"Content-Length", b"0"),
        ("no name", b"", b"a"),
        ("line feed in a name", b"x\n", b"a"),
        ("CRLF in a name", b"x: a\r\ny", b"a"),
        ("colon in a name", b"x:y", b"a"),
        ("colon behind a name", b"x:", b"a"),
        ("space in a name", b"x y", b"a"),
        ("null in a name", b"x\0", b"a"),
        ("high byte in a name", b"x\xff", b"a"),
        ("unknown pseudo field", b":evil", b"a"),
        ("pseudo field behind a field", b":status", b"204"),
        ("transfer-encoding", b"transfer-encoding", b"chunked"),
        ("connection", b"connection", b"close"),
        ("keep-alive", b"keep-alive", b"timeout=5"),
        ("upgrade", b"upgrade", b"websocket"),
    ];
    for (name, field, value) in fields {
        check_refused(&gateway, &origin, name, move |to, stream| {
            let fields = [(&b":status"[..], &b"200"[..]), (b"a", b"b"), (field, value)];
            to.send(answer(stream, &fields))
        });
    }
    check_fine(&gateway, "at the end");
}

#[test]
fn a_status_that_is_none_is_a_502() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    let statuses: [(&str, &[&[u8]]); 12] = [
        ("none", &[]),
        ("two", &[b"200", b"204"]),
        ("twice the same", &[b"200", b"200"]),
        ("101", &[b"101"]),
        ("letters", &[b"abc"]),
        ("two digits", &[b"99"]),
        ("below 100", &[b"099"]),
        ("four digits", &[b"2000"]),
        ("empty", &[b""]),
        ("with a reason", &[b"200 OK"]),
        ("with CRLF", &[b"200\r\nx: y"]),
        ("negative", &[b"-20"]),
    ];
    for (name, values) in statuses {
        check_refused(&gateway, &origin, name, move |to, stream| {
            let fields: Vec<_> = values
                .iter()
                .map(|value| (&b":status"[..], *value))
                .collect();
            to.send(answer(stream, &fields))
        });
    }
}

#[test]
fn lengths_that_differ_or_are_none_are_a_502() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    let lengths: [&[&[u8]]; 9] = [
        &[b"4", b"5"],
        &[b"5", b"4"],
        &[b"4, 5"],
        &[b"-4"],
        &[b"+4"],
        &[b"0x4"],
        &[b"4 4"],
        &[b""],
        &[b"99999999999999999999"],
    ];
    for values in lengths {
        let name = format!("{:?}", String::from_utf8_lossy(&values.join(&b'|')));
        check_refused(&gateway, &origin, &name, move |to, stream| {
            let mut fields = vec![(&b":status"[..], &b"200"[..])];
            fields.extend(values.iter().map(|value| (&b"content-length"[..], *value)));
            to.send(answer(stream, &fields))
        });
    }
    // A stream that ends with its head has no body, whatever length the head announces.
    check_refused(
        &gateway,
        &origin,
        "a length without a body",
        |to, stream| {
            let fields = [(":status", "200"), ("content-length", "4")];
            to.send(head(stream, END_STREAM, &fields))
        },
    );
}

const STATUS: [(&str, &str); 1] = [(":status", "200")];

#[test]
fn what_is_no_response_is_a_502() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    let cases: [(&str, Does); 8] = [
        ("a body first", |to, stream| {
            to.send(frame(DATA, END_STREAM, stream, "evil"))
        }),
        ("a request", |to, stream| {
            let fields = [(":method", "GET"), (":path", "/"), (":scheme", "http")];
            to.send(head(stream, END_STREAM, &fields))
        }),
        ("an interim response as the last", |to, stream| {
            to.send(head(stream, END_STREAM, &[(":status", "100")]))
        }),
        ("an empty head", |to, stream| {
            to.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, []))
        }),
        ("no HPACK", |to, stream| {
            to.send(frame(HEADERS, END_HEADERS, stream, [0xff; 40]))
        }),
        ("another frame in the middle of a head", |to, stream| {
            to.send(frame(HEADERS, 0, stream, field(":status", "200")))?;
            to.send(frame(DATA, END_STREAM, stream, "evil"))
        }),
        ("the rest of a head that was not begun", |to, stream| {
            to.send(frame(CONTINUATION, END_HEADERS, stream, block(&STATUS)))
        }),
        ("a head on a stream that nobody opened", |to, stream| {
            to.send(head(stream + 100, END_STREAM, &STATUS))
        }),
    ];
    for (name, does) in cases {
        check_refused(&gateway, &origin, name, does);
    }
}

#[test]
fn a_head_that_is_too_large_is_a_502() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "max_header_size = \"8KB\"");
    let cases: [(&str, Does); 4] = [
        ("one large value", |to, stream| {
            let large = "x".repeat(9000);
            to.send(head(stream, END_STREAM, &[STATUS[0], ("x", &large)]))
        }),
        ("many fields", |to, stream| {
            let mut fields = STATUS.to_vec();
            fields.resize(300, ("x", "y"));
            to.send(head(stream, END_STREAM, &fields))
        }),
        ("a small one that unpacks to a large one", |to, stream| {
            let mut bytes = field(":status", "200");
            // A literal that is added to the table as its first entry, and then is repeated.
            let mut literal = field("x", "x".repeat(4000));
            literal[0] = 0x40;
            bytes.extend(literal);
            bytes.extend([0xbe; 3000]);
            to.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, bytes))
        }),
        ("more fields than are kept", |to, stream| {
            let mut fields = STATUS.to_vec();
            fields.resize(600, ("x", ""));
            to.send(head(stream, END_STREAM, &fields))
        }),
    ];
    for (name, does) in cases {
        check_refused(&gateway, &origin, name, does);
    }
    check_fine(&gateway, "at the end");
}
