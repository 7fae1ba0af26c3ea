//! Tests of cache poisoning: unkeyed parts of a request affect no shared response.
//!
//! A client that sends fields only the origin reads must not change the responses of others, nor
//! receive theirs.

use std::fmt::Write;
use std::net::SocketAddr;

use super::{ALL, LIMITS, file, how, request};
use crate::support::frames::{END_HEADERS, END_STREAM, Frames, Outcome, head};
use crate::support::{Answer, Client, Exchange, Gateway, Origin};

const HOUR: &str = "keep = \"1h\"";

/// Starts an origin that answers with the complete request.
fn echo() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let body = exchange.body()?;
        let mut seen = exchange.head.first_line.clone();
        for (name, value) in &exchange.head.fields {
            write!(seen, "\n{name}: {value}").expect("a string takes it");
        }
        write!(seen, "\n\n{}", String::from_utf8_lossy(&body)).expect("a string takes it");
        exchange.reply(seen.as_bytes())
    })
}

fn send(at: SocketAddr, bytes: &str) -> Answer {
    let mut client = Client::connect(at);
    client.send(bytes.as_bytes());
    client.answer()
}

fn get(at: SocketAddr, target: &str, fields: &str) -> Answer {
    send(at, &request("GET", target, fields))
}

/// Fails if the second request gets a response that was made for the first one.
fn are_apart(at: SocketAddr, first: &str, second: &str) {
    let first_answer = send(at, first);
    assert_eq!(first_answer.status, 200, "{first}");
    for _ in 0..2 {
        let answer = send(at, second);
        assert_eq!(answer.status, 200, "{second}");
        assert_ne!(answer.text(), first_answer.text(), "{first}{second}");
    }
    // The other way round.
    let again = send(at, first);
    assert_ne!(again.text(), send(at, second).text(), "{first}{second}");
}

/// Fails unless the second request gets the response that was made for the first one.
fn are_one(at: SocketAddr, first: &str, second: &str) {
    let first_answer = send(at, first);
    let answer = send(at, second);
    assert_eq!(how(&answer), "kept", "{first}{second}{}", answer.text());
    assert_eq!(answer.text(), first_answer.text());
}

#[test]
fn what_an_origin_may_take_for_a_host_a_path_or_a_method_poisons_no_answer() {
    let origin = echo();
    let gateway = Gateway::start(&file(origin.address, HOUR));
    let at = gateway.address();
    #[rustfmt::skip]
    let fields = [
        "X-Forwarded-Host: evil.test", "X-Forwarded-Host: a\r\nX-Forwarded-Host: evil.test",
        "X-Forwarded-Proto: evil", "X-Forwarded-Port: 666evil", "X-Forwarded-Scheme: evil",
        "X-Forwarded-Server: evil.test", "X-Forwarded-Prefix: /evil", "X-Forwarded-Uri: /evil",
        "X-Forwarded-For: 6.6.6.6, evil", "X_Forwarded_Host: evil.test",
        "X-Forwarded_Host: evil.test", "X.Forwarded.Host: evil.test", "X-Real-IP: evil",
        "Forwarded: for=evil;host=evil.test;proto=evil", "X-Original-URL: /evil",
        "X-Rewrite-URL: /evil", "X-Original-Host: evil.test", "X-HTTP-Method-Override: evil",
        "X_Http_Method_Override: evil", "X-HTTP-Method: evil", "X-Method-Override: evil",
        "Connection: x-forwarded-host\r\nX-Forwarded-Host: evil.test",
        "Connection: host\r\nX-Forwarded-Host: evil.test", "Accept-Language: evil",
        "Accept_Language: evil", "Accept-Encoding: evil",
        "Connection: accept-language\r\nAccept-Language: evil",
        "Connection: accept-encoding\r\nAccept-Encoding: evil", "If-Match: \"evil\"",
        "If-None-Match: \"evil\"", "If-Modified-Since: evil", "If-Unmodified-Since: evil",
        "Range: bytes=0-1, evil", "If-Range: \"evil\"", "Cookie: a=evil", "Authorization: evil",
        "Proxy-Authorization: evil", "Cache-Control: no-store, evil",
        "Content-Length: 4\r\n\r\nevil", "Transfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0",
        "Upgrade: evil\r\nConnection: upgrade", "Expect: 100-continue\r\nX-Evil: evil",
    ];
    for (nth, fields) in fields.iter().enumerate() {
        let target = format!("/{nth}");
        let mut attacker = Client::connect(at);
        let text = request("GET", &target, &format!("{fields}\r\n"));
        attacker.send(text.as_bytes());
        // The request may be refused.
        let refused = attacker.try_answer();
        let victim = get(at, &target, "");
        assert_eq!(victim.status, 200, "{fields}: {refused:?}");
        let text = victim.text();
        assert!(!text.contains("evil"), "{fields}: {text}");
        assert!(text.contains(&format!("GET {target} ")), "{fields}");
    }
    // A request with the fields must not share with one without, if the origin would receive them.
    for (nth, fields) in fields.iter().enumerate() {
        let target = format!("/{nth}");
        let mut client = Client::connect(at);
        let text = request("GET", &target, &format!("{fields}\r\n"));
        client.send(text.as_bytes());
        if let Ok(answer) = client.try_answer()
            && (fields.contains("evil\r\n") || fields.starts_with("Authorization"))
        {
            assert_ne!(how(&answer), "kept", "{fields}");
        }
    }
}

/// Requests that differ in anything the origin receives are kept apart.
#[test]
fn requests_that_differ_in_what_the_origin_answers_by_are_kept_apart() {
    let origin = echo();
    let gateway = Gateway::start(&file(
        origin.address,
        "keep = \"1h\"\nvary = [\"x-a\", \"x-b\", \"accept-language\"]",
    ));
    let at = gateway.address();
    let line = |line: &str, fields: &str| format!("{line} HTTP/1.1\r\n{fields}\r\n");
    let a = "Host: a\r\n";
    for (first, second) in [
        (("GET /1", "Host: a\r\n"), ("GET /1", "Host: b\r\n")),
        (("GET /2", "Host: a\r\n"), ("GET /2", "Host: a:81\r\n")),
        (("GET /3", "Host: a:80\r\n"), ("GET /3", "Host: a:81\r\n")),
        (("GET http://b/4", "Host: a\r\n"), ("GET /4", "Host: a\r\n")),
        (("GET /6?a=1", a), ("GET /6?a=2", a)),
        (("GET /7?a=1", a), ("GET /7", a)),
        (("GET /8?", a), ("GET /8", a)),
        (("GET /9?a&b", a), ("GET /9?b&a", a)),
        (("GET /x%2ey", a), ("GET /x.y", a)),
        (("GET /10/../11", a), ("GET /11", a)),
        (("GET //12", a), ("GET /12", a)),
        (("GET /13%2Fa", a), ("GET /13/a", a)),
        (("GET /15/", a), ("GET /15", a)),
        (("GET /17;a", a), ("GET /17", a)),
        (("GET /AB", a), ("GET /ab", a)),
        // Two fields whose values join to the same text.
        (
            ("GET /20", "Host: a\r\nX-A: ab\r\nX-B: c\r\n"),
            ("GET /20", "Host: a\r\nX-A: a\r\nX-B: bc\r\n"),
        ),
        (
            ("GET /21", "Host: a\r\nX-A: a\r\n"),
            ("GET /21", "Host: a\r\nX-B: a\r\n"),
        ),
        (
            ("GET /22", "Host: a\r\nX-A:\r\n"),
            ("GET /22", "Host: a\r\n"),
        ),
        (
            ("GET /24", "Host: a\r\nAccept-Language: a, b\r\n"),
            (
                "GET /24",
                "Host: a\r\nAccept-Language: a\r\nAccept-Language: b\r\n",
            ),
        ),
        (
            (
                "GET /25",
                "Host: a\r\nAccept-Language: de\r\nConnection: accept-language\r\n",
            ),
            ("GET /25", a),
        ),
        (
            ("GET /26", "Host: a\r\nX-A: 1\r\nConnection: x-a\r\n"),
            ("GET /26", a),
        ),
        // Two methods.
        (("OPTIONS /27", a), ("GET /27", a)),
    ] {
        are_apart(at, &line(first.0, first.1), &line(second.0, second.1));
    }
    // The origin answers these alike.
    for (nth, first, second) in [
        (30, "Host: a\r\n", "Host: A\r\n"),
        (31, "Host: a\r\n", "Host:   a\r\nUser-Agent: x\r\n"),
        (32, "Host: a\r\nX-Other: 1\r\n", "Host: a\r\n"),
        (33, "Host: a\r\nX-A: 1\r\n", "X-A:1 \r\nHost: a\r\n"),
    ] {
        let get = format!("GET /{nth}");
        are_one(at, &line(&get, first), &line(&get, second));
    }
    // A field of `vary` that may appear once is refused if it appears twice.
    let twice = get(at, "/40", "X-A: 1\r\nX-A: 2\r\n");
    assert_eq!(twice.status, 400, "{twice:?}");
}

#[test]
fn the_parts_of_a_key_and_routes_of_other_hosts_are_kept_apart() {
    let (one, two) = (echo(), echo());
    let route = |path: &str, origin: &str, more: &str| {
        format!(
            "[[routes]]\npath = \"{path}\"\norigin = \"{origin}\"\nheaders = [\"shared\"]\n{more}\n"
        )
    };
    let by = |key: &str| format!("[routes.collapse]\nkeep = \"1h\"\nkey = \"{key}\"");
    let uri = by("$uri");
    let routes = [
        route(
            "/parts",
            "one",
            &format!("{LIMITS}\n{}", by("$arg_a$arg_b")),
        ),
        route("/all", "one", &uri),
        route("/all", "two", &format!("host = \"b\"\n{uri}")),
        route(
            "/all",
            "one",
            &format!("host = \"c\"\nrequest_headers = {{ x-route = \"c\" }}\n{uri}"),
        ),
        route("/all", "one", "host = \"d\""),
    ];
    let file = format!(
        "[origins]\none.servers = [\"http://{}\"]\ntwo.servers = [\"http://{}\"]\n{ALL}{}",
        one.address,
        two.address,
        routes.concat()
    );
    let gateway = Gateway::start(&file);
    let at = gateway.address();
    let parts = |query: &str| request("GET", &format!("/parts?{query}"), "");
    are_apart(at, &parts("a=1&b=23"), &parts("a=12&b=3"));
    are_apart(at, &parts("a=9&b="), &parts("a=&b=9"));
    are_one(at, &parts("a=7&b=8"), &parts("b=8&a=7"));
    let of = |host: &str| format!("GET /all HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for (first, second) in [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("e", "f")] {
        are_apart(at, &of(first), &of(second));
    }
    assert_eq!(how(&send(at, &of("d"))), "");
    are_one(at, &of("e"), &of("e"));
}

#[test]
fn http_2_and_http_1_share_one_kind() {
    let origin = echo();
    let gateway = Gateway::start(&file(origin.address, HOUR));
    let at = gateway.address();
    let first = get(at, "/a", "Accept-Language: de\r\n");
    assert_eq!(how(&first), "leader");
    let mut frames = Frames::connect(at);
    let mut stream = 1;
    let mut over = |authority: &str, more: &[(&str, &str)]| {
        let mut fields = vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/a"),
            (":authority", authority),
        ];
        fields.extend(more);
        let bytes = head(stream, END_HEADERS | END_STREAM, &fields);
        frames.send(bytes).expect("the gateway reads");
        assert_eq!(frames.outcome(stream), Outcome::Status(200));
        let body = frames.body(stream).expect("a body");
        stream += 2;
        String::from_utf8(body).expect("text")
    };
    let language = ("accept-language", "de");
    assert_eq!(over("a", &[language]), first.text());
    assert_eq!(origin.arrivals().len(), 1);
    // Cookies of several lines, another host, another language, and a login.
    for (authority, more) in [
        ("a", vec![language, ("cookie", "a=1"), ("cookie", "b=2")]),
        ("b", vec![language]),
        ("a", vec![("accept-language", "en")]),
        ("a", vec![]),
        ("a", vec![language, ("authorization", "x")]),
    ] {
        assert_ne!(over(authority, &more), first.text(), "{authority} {more:?}");
    }
    assert_eq!(origin.arrivals().len(), 6);
}
