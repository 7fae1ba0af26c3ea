//! Requests over HTTP/2 that would be others over HTTP/1: none of them reaches an origin.
//!
//! nginx is asked the same, which shows that the test itself is right.

use std::sync::{Arc, Mutex};

use crate::support::frames::{DATA, END_STREAM, Frames, Outcome, frame, head};
use crate::support::nginx::Nginx;
use crate::support::wire::Head;
use crate::support::{Gateway, Origin, fetch, free_address, one_origin};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A request: its fields, and its body, if its head does not end the stream.
struct Case {
    name: &'static str,
    fields: Fields,
    body: Option<&'static str>,
    /// Whether nginx 1.22 serves it.
    nginx_serves: bool,
}

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n";

fn post() -> Fields {
    let own = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", "/case"),
    ];
    own.map(|(name, value)| (name.into(), value.into())).into()
}

/// A POST with more fields, and a body.
fn with(name: &'static str, more: &[(&str, &str)], body: &'static str) -> Case {
    let mut fields = post();
    fields.extend(
        more.iter()
            .map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())),
    );
    Case {
        name,
        fields,
        body: Some(body),
        nginx_serves: false,
    }
}

/// A POST without a body with another value of a pseudo field.
fn pseudo(name: &'static str, field: &str, value: &[u8]) -> Case {
    let mut case = with(name, &[], "");
    let mut all = case.fields.iter_mut();
    let own = all.find(|(name, _)| name == field.as_bytes());
    own.expect("a pseudo field").1 = value.into();
    case.body = None;
    case
}

/// A POST with a second one of a pseudo field, or with a new one, behind the others.
fn second(name: &'static str, field: &str, value: &str) -> Case {
    let mut case = with(name, &[(field, value)], "");
    case.body = None;
    case
}

fn without(name: &'static str, field: &str) -> Case {
    let mut case = with(name, &[], "");
    case.fields.retain(|(name, _)| name != field.as_bytes());
    case.body = None;
    case
}

impl Case {
    fn served_by_nginx(mut self) -> Self {
        self.nginx_serves = true;
        self
    }
}

fn fields() -> Vec<Case> {
    vec![
        with(
            "transfer-encoding",
            &[("transfer-encoding", "chunked")],
            "0\r\n\r\nGET /smuggled",
        )
        .served_by_nginx(),
        with(
            "Transfer-Encoding",
            &[("Transfer-Encoding", "chunked")],
            "0\r\n\r\nGET /smuggled",
        ),
        with("connection", &[("connection", "close")], "").served_by_nginx(),
        with("keep-alive", &[("keep-alive", "timeout=5")], "").served_by_nginx(),
        with("proxy-connection", &[("proxy-connection", "close")], "").served_by_nginx(),
        with("upgrade", &[("upgrade", "websocket")], "").served_by_nginx(),
        with("te", &[("te", "gzip")], "").served_by_nginx(),
        with("CRLF in a value", &[("x", "a\r\nx-evil: 1")], ""),
        with("line feed in a value", &[("x", "a\nx-evil: 1")], ""),
        with("carriage return in a value", &[("x", "a\rx-evil: 1")], ""),
        with("null in a value", &[("x", "a\0b")], ""),
        with("a folded value", &[("x", "a\r\n b")], ""),
        with(
            "a request in a value",
            &[("x", "a\r\n\r\nGET /smuggled HTTP/1.1\r\nx: ")],
            "",
        ),
        with("CRLF in a name", &[("x: a\r\nx-evil", "1")], ""),
        with(
            "colon in a name",
            &[("transfer-encoding: chunked\r\nx", "1")],
            "",
        ),
        with(
            "colon behind a name",
            &[("transfer-encoding:", "chunked")],
            "",
        ),
        with(
            "space behind a name",
            &[("transfer-encoding ", "chunked")],
            "",
        ),
        with("no name", &[("", "1")], ""),
        with("two hosts", &[("host", "test"), ("host", "test")], ""),
        with("another host", &[("host", "evil")], ""),
    ]
}

fn pseudo_fields() -> Vec<Case> {
    vec![
        pseudo(
            "CRLF in the path",
            ":path",
            b"/ HTTP/1.1\r\nx-evil: 1\r\n\r\nGET /smuggled",
        ),
        pseudo("line feed in the path", ":path", b"/\nGET /smuggled"),
        pseudo("null in the path", ":path", b"/\0"),
        pseudo("space in the path", ":path", b"/smuggled HTTP/1.1"),
        pseudo("tab in the path", ":path", b"/\tsmuggled"),
        pseudo("DEL in the path", ":path", b"/\x7fsmuggled"),
        pseudo("an absolute path", ":path", b"http://evil/smuggled"),
        pseudo("no slash", ":path", b"smuggled"),
        pseudo("an empty path", ":path", b""),
        pseudo("an asterisk", ":path", b"*"),
        without("no path", ":path"),
        second("two paths", ":path", "/smuggled"),
        pseudo(
            "CRLF in the method",
            ":method",
            b"GET /smuggled HTTP/1.1\r\nx: ",
        ),
        pseudo("space in the method", ":method", b"GET /smuggled HTTP/1.1"),
        pseudo("an empty method", ":method", b""),
        pseudo("a colon in the method", ":method", b"GET:"),
        pseudo("a method in small letters", ":method", b"post"),
        pseudo("a small letter in the method", ":method", b"POSt"),
        without("no method", ":method"),
        second("two methods", ":method", "GET"),
        pseudo("CRLF in the authority", ":authority", b"test\r\nx-evil: 1"),
        pseudo("a path in the authority", ":authority", b"test/smuggled"),
        pseudo("a user in the authority", ":authority", b"evil@test").served_by_nginx(),
        pseudo("space in the authority", ":authority", b"test evil"),
        pseudo("a list of authorities", ":authority", b"test,evil").served_by_nginx(),
        without("no authority", ":authority"),
        second("two authorities", ":authority", "test"),
        pseudo("CRLF in the scheme", ":scheme", b"http\r\nx-evil: 1"),
        pseudo(
            "a target in the scheme",
            ":scheme",
            b"http://evil/smuggled?",
        ),
        without("no scheme", ":scheme"),
        second("a pseudo field of responses", ":status", "200"),
        second("an unknown pseudo field", ":evil", "1"),
        second("a protocol without CONNECT", ":protocol", "websocket"),
        {
            let mut case = with("a pseudo field behind a field", &[("x", "y")], "");
            let path = case.fields.remove(3);
            case.fields.push(path);
            case.served_by_nginx()
        },
    ]
}

/// What the origin got: the first line, the fields and the body of each request.
type Seen = Arc<Mutex<Vec<(Head, Vec<u8>)>>>;

fn recording() -> (Origin, Seen) {
    let seen = Seen::default();
    let to_see = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange| {
        let head = exchange.head.clone();
        let body = exchange.body()?;
        to_see.lock().expect("no panic").push((head, body));
        exchange.reply(b"ok")
    });
    (origin, seen)
}

/// Whether a proxy serves the case, which must leave it fit for others.
fn serves(proxy: std::net::SocketAddr, case: &Case) -> bool {
    let mut client = Frames::connect(proxy);
    let flags = if case.body.is_none() { END_STREAM } else { 0 };
    let mut bytes = head(1, flags, &case.fields);
    if let Some(body) = case.body {
        bytes.extend(frame(DATA, END_STREAM, 1, body));
    }
    // It may end the connection after the head.
    let _sent = client.send(bytes);
    matches!(client.outcome(1), Outcome::Status(200..=299))
}

fn check_all(cases: &[Case]) {
    let (origin, seen) = recording();
    let file = one_origin(origin.address, "workers = 1", "");
    let gateway = Gateway::start(&file);
    for case in cases {
        assert!(!serves(gateway.address(), case), "{}", case.name);
        assert_eq!(
            fetch(gateway.address(), "/next").status,
            200,
            "{}",
            case.name
        );
        for (head, body) in seen.lock().expect("no panic").drain(..) {
            let text = format!("{head:?} {body:?}");
            assert_eq!(
                head.first_line, "GET /next HTTP/1.1",
                "{}: {text}",
                case.name
            );
        }
    }
    let address = free_address();
    let server =
        format!("server {{ listen {address} http2; location / {{ proxy_pass http://origin; }} }}");
    let _nginx = Nginx::before(origin.address, &server, &[("/", "")]);
    let odd: Vec<_> = cases
        .iter()
        .filter(|case| serves(address, case) != case.nginx_serves)
        .map(|case| (case.name, case.nginx_serves))
        .collect();
    assert!(odd.is_empty(), "nginx: {odd:?}");
}

#[test]
fn fields_that_http_1_would_read_otherwise_are_refused() {
    check_all(&fields());
}

#[test]
fn pseudo_fields_that_http_1_would_read_otherwise_are_refused() {
    check_all(&pseudo_fields());
}

#[test]
fn what_looks_like_http_1_in_a_body_stays_a_body() {
    let (origin, seen) = recording();
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", ""));
    let mut client = Frames::connect(gateway.address());
    let bodies = [
        SMUGGLED,
        "0\r\n\r\n",
        "0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
        "5\r\nhello",
    ];
    let mut stream = 1;
    for body in bodies {
        for told in [true, false] {
            let mut fields = post();
            if told {
                fields.push((b"content-length".to_vec(), body.len().to_string().into()));
            }
            let bytes = [
                head(stream, 0, &fields),
                frame(DATA, END_STREAM, stream, body),
            ];
            client.send(bytes.concat()).expect("the gateway reads");
            assert_eq!(client.outcome(stream), Outcome::Status(200));
            assert_eq!(client.body(stream), Ok(b"ok".to_vec()));
            let (head, came) = seen.lock().expect("no panic").pop().expect("a request");
            assert_eq!(head.first_line, "POST /case HTTP/1.1");
            assert_eq!(came, body.as_bytes());
            stream += 2;
        }
    }
    assert!(seen.lock().expect("no panic").is_empty());
}

#[test]
fn trailers_that_frame_do_not_pass_and_pseudo_fields_are_none() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let to_see = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange| {
        let mut came = vec![0; 4096];
        let mut all = Vec::new();
        // The whole chunked body as it is on the wire.
        while !all.ends_with(b"\r\n\r\n") {
            let count = std::io::Read::read(exchange.stream(), &mut came)?;
            if count == 0 {
                break;
            }
            all.extend_from_slice(&came[..count]);
        }
        let text = String::from_utf8_lossy(&all).into_owned();
        to_see.lock().expect("no panic").push(text);
        exchange.reply(b"ok")
    });
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", ""));
    let trailers = [
        ("x-sum", "1"),
        ("content-length", "0"),
        ("host", "evil"),
        ("cookie", "evil"),
    ];
    let mut client = Frames::connect(gateway.address());
    let bytes = [
        head(1, 0, &post()),
        frame(DATA, 0, 1, "hello"),
        head(1, END_STREAM, &trailers),
    ];
    client.send(bytes.concat()).expect("the gateway reads");
    assert_eq!(client.outcome(1), Outcome::Status(200));
    let came = seen.lock().expect("no panic").pop().expect("a body");
    assert_eq!(came, "5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n");
}
