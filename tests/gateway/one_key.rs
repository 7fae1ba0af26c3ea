//! Tests that a request counts under the key that its origin reads.
//!
//! Fields, cookies and arguments of keys are read in one way, and reach the origin in that form.

use std::thread;

use crate::support::{Gateway, Message, Raw, RawOrigin, http2};

fn file(origin: &RawOrigin, server: &str) -> String {
    format!(
        "{server}\n[origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"$http_x_api_key$cookie_user$arg_key\"\nrate = \"1r/h\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 0 }}]\n\
         [[routes]]\npath = \"/cost\"\norigin = \"app\"\ncost = {{ header = \"x-cost\", max = 2 }}\n\
         limits = [{{ zone = \"z\", burst = 1 }}]\n\
         [[routes]]\npath = \"/free\"\norigin = \"app\"\n",
        origin.address
    )
}

fn start(server: &str) -> (RawOrigin, Gateway) {
    let origin = RawOrigin::start();
    let gateway = Gateway::start(&file(&origin, server));
    (origin, gateway)
}

/// Sends a request. Each char of `fields` is one byte.
pub fn ask(gateway: &Gateway, target: &str, fields: &str) -> Raw {
    let mut client = Raw::connect(gateway.address());
    let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    client.send(text.chars().map(|it| it as u8).collect::<Vec<u8>>());
    client
}

/// Returns the request that the origin receives.
pub fn seen(origin: &RawOrigin, gateway: &Gateway, target: &str, fields: &str) -> Message {
    let mut client = ask(gateway, target, fields);
    let request = reply(origin);
    assert_eq!(client.answer().status(), 200, "{target} {fields}");
    request
}

/// Answers the next request, and returns it.
fn reply(origin: &RawOrigin) -> Message {
    let mut connection = origin.accept();
    let request = connection.request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    request
}

/// Returns all values of a field.
pub fn values<'a>(request: &'a Message, name: &str) -> Vec<&'a str> {
    let named = request.fields.iter().filter(|(found, _)| found == name);
    named.map(|(_, value)| value.as_str()).collect()
}

pub fn status(gateway: &Gateway, target: &str, fields: &str) -> u16 {
    ask(gateway, target, fields).answer().status()
}

const ODD: &str = "X_Api_Key: a\r\nx-api_key: b\r\nX.Api.Key: c\r\nX_Own: d\r\n";
const NAMES: [&str; 4] = ["x_api_key", "x-api_key", "x.api.key", "x_own"];

#[test]
fn fields_that_only_seem_to_be_the_key_end_here() {
    let (origin, gateway) = start("");
    let passed = |request: &Message| NAMES.map(|name| values(request, name).len());
    // The request has no key, so any number pass.
    for _ in 0..2 {
        let request = seen(&origin, &gateway, "/", ODD);
        assert_eq!(passed(&request), [0, 0, 0, 1], "{request:?}");
    }
    // No limit there reads the field.
    let request = seen(&origin, &gateway, "/free", ODD);
    assert_eq!(passed(&request), [1, 1, 1, 1], "{request:?}");
    // Over HTTP/2, too.
    let at = gateway.address();
    let asking = thread::spawn(move || {
        let fields: Vec<_> = ODD.lines().filter_map(|it| it.split_once(": ")).collect();
        http2::get(at, &fields).status
    });
    let request = reply(&origin);
    assert_eq!(asking.join().expect("no panic"), 200);
    assert_eq!(passed(&request), [0, 0, 0, 1], "{request:?}");
}

#[test]
fn with_underscores_both_spellings_are_one_field() {
    let (origin, gateway) = start("underscores_in_headers = true");
    let request = seen(&origin, &gateway, "/", "X_Api_Key: a\r\nX.Api.Key: c\r\n");
    let passed = NAMES.map(|name| values(&request, name).len());
    assert_eq!(passed, [1, 0, 0, 0], "{request:?}");
    for (fields, expected) in [
        ("X-Api-Key: a\r\n", 429),
        ("X_Api_Key: a\r\n", 429),
        ("X-Api_Key: a\r\n", 429),
        ("X-Api-Key: b\r\nX_Api_Key: c\r\n", 400),
    ] {
        assert_eq!(status(&gateway, "/", fields), expected, "{fields}");
    }
}

#[test]
fn connection_and_trailers_change_no_key() {
    let (origin, gateway) = start("");
    let named_away = "Connection: x-api-key, x-own\r\nX-Own: 1\r\nX-Api-Key: a\r\n";
    let request = seen(&origin, &gateway, "/", named_away);
    assert_eq!(values(&request, "x-api-key"), ["a"]);
    assert_eq!(values(&request, "x-own"), [""; 0]);
    assert_eq!(status(&gateway, "/", "X-Api-Key: a\r\n"), 429);

    let mut client = Raw::connect(gateway.address());
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\nX-Api-Key: b\r\nX_Api_Key: b\r\nX-Own: 1\r\n\r\n",
    );
    let request = origin.accept().request();
    assert_eq!(request.trailers, [("x-own".to_owned(), "1".to_owned())]);
}

#[test]
fn a_field_or_an_argument_that_a_key_reads_is_there_once() {
    let (origin, gateway) = start("trusted_proxies = [\"127.0.0.1\"]");
    for (target, fields) in [
        ("/", "X-Api-Key: a\r\nX-Api-Key: b\r\n"),
        ("/", "X-Api-Key: a\r\nx-api-key: a\r\n"),
        ("/", "X-Api-Key: a\r\nX-Api-Key:\r\n"),
        ("/cost", "X-Cost: 1\r\nX-Cost: 2\r\n"),
        ("/?key=a&key=b", ""),
        ("/?key=a&x=1&%6bey", ""),
        ("/", "Cookie: x=1,user=2\r\n"),
    ] {
        assert_eq!(status(&gateway, target, fields), 400, "{target} {fields}");
    }
    let metrics = gateway.metrics();
    let labels = [("zone", "z"), ("status", "passed")];
    assert_eq!(metrics.count("drip_zone_requests_total", &labels), 0);
    // Where no limit reads them, they are forwarded unchanged.
    let fields = "X-Api-Key: a\r\nX-Api-Key: b\r\nCookie: user=1; user=2\r\n";
    let request = seen(&origin, &gateway, "/free?key=a&key=b", fields);
    assert_eq!(values(&request, "x-api-key"), ["a", "b"]);
    assert_eq!(values(&request, "cookie"), ["user=1; user=2"]);
    assert_eq!(request.line, "GET /free?key=a&key=b HTTP/1.1");
}

#[test]
fn only_the_first_cookie_of_a_key_reaches_the_origin() {
    let (origin, gateway) = start("");
    let cookies = "Cookie: a=1; user=one; b=2; USER=two\r\nCookie: user=three\r\nCookie: c=3\r\n";
    let request = seen(&origin, &gateway, "/", cookies);
    assert_eq!(values(&request, "cookie"), ["a=1; user=one; b=2", "c=3"]);
    assert_eq!(status(&gateway, "/", "Cookie: user=one\r\n"), 429);
    let request = seen(&origin, &gateway, "/", "Cookie: user=two; a=1\r\n");
    assert_eq!(values(&request, "cookie"), ["user=two; a=1"]);
}
