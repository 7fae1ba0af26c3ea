//! HTTP/2 requests that would mean something else in HTTP/1.

use std::net::SocketAddr;

use crate::support::frames::{DATA, END_STREAM, Frames, Outcome, frame, head};

pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A request: its fields, and its body unless the head ends the stream.
pub struct Case {
    pub name: &'static str,
    pub fields: Fields,
    pub body: Option<&'static str>,
    /// Whether nginx 1.22 serves it.
    pub nginx_serves: bool,
}

pub fn post() -> Fields {
    let own = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", "/case"),
    ];
    own.map(|(name, value)| (name.into(), value.into())).into()
}

/// Returns a POST with more fields, and a body.
pub fn with(name: &'static str, more: &[(&str, &str)], body: &'static str) -> Case {
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

/// Returns a POST without a body whose pseudo field has another value.
fn pseudo(name: &'static str, field: &str, value: &[u8]) -> Case {
    let mut case = with(name, &[], "");
    let mut all = case.fields.iter_mut();
    let own = all.find(|(name, _)| name == field.as_bytes());
    own.expect("a pseudo field").1 = value.into();
    case.body = None;
    case
}

/// Returns a POST with a repeated or unknown pseudo field behind the others.
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

pub fn fields() -> Vec<Case> {
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

pub fn pseudo_fields() -> Vec<Case> {
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

/// Returns whether a proxy serves the case. It must still serve other requests afterwards.
pub fn serves(proxy: SocketAddr, case: &Case) -> bool {
    let mut client = Frames::connect(proxy);
    let flags = if case.body.is_none() { END_STREAM } else { 0 };
    let mut bytes = head(1, flags, &case.fields);
    if let Some(body) = case.body {
        bytes.extend(frame(DATA, END_STREAM, 1, body));
    }
    // The proxy may end the connection after the head.
    let _sent = client.send(bytes);
    matches!(client.outcome(1), Outcome::Status(200..=299))
}
