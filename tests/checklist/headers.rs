//! Checklist lines 1 to 6: header fields that are forwarded, dropped or written.

use std::thread;

use super::bed::{
    GET, MB, OK, Testbed, each, everybody, get_with, haproxy_and_drip, noise, ok_with, pairs,
    post_with,
};
use crate::support::{Message, Raw};

/// Hop-by-hop fields, except those that frame the message.
const HOP: &str =
    "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nTrailer: X-Sum\r\n";

fn check_dropped(message: &Message, names: &[&str]) {
    for name in names {
        assert!(!message.has(name), "{name} goes no further");
    }
}

// Neither nginx nor haproxy drops all fields named in `Connection`. haproxy drops only `close`,
// `keep-alive` and `upgrade`.
#[test]
fn line_01_connection_and_what_it_names_go_no_further() {
    let bed = Testbed::drip("", "");
    for lines in [
        "Connection: X-One, x-two\r\nX-One: 1\r\nX-Two: 2\r\nX-Three: 3\r\n",
        "Connection: X-One\r\nConnection: ,, X-TWO ,\r\nX-One: 1\r\nX-One: 1\r\nX-Two: 2\r\nX-Three: 3\r\n",
        "X-One: 1\r\nX-Two: 2\r\nX-Three: 3\r\nConnection: keep-alive,x-one,\tX-Two\r\n",
    ] {
        for message in [bed.seen(get_with(lines)), bed.received(ok_with(lines))] {
            check_dropped(&message, &["connection", "x-one", "x-two"]);
            assert_eq!(message.field("x-three"), Some("3"), "{lines:?}");
        }
    }
}

#[test]
fn line_01_connection_itself_ends_at_the_proxy() {
    for bed in everybody() {
        let seen = bed.seen(get_with("Connection: keep-alive\r\n"));
        check_dropped(&seen, &["connection"]);
        // An origin that closes does not close the client's connection.
        let answer = ok_with("Connection: close\r\n");
        let mut passed = bed.pass(GET, answer);
        let received = passed.client.answer();
        assert_ne!(received.field("connection"), Some("close"));
        drop(passed.origin);
        passed.client.send(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        origin.send(OK);
        assert_eq!(passed.client.answer().body, b"ok");
    }
}

#[test]
fn line_01_connection_cannot_name_away_what_gives_the_message_its_meaning() {
    const LINES: &str = "Connection: Host, Content-Length, Authorization, Cookie, X-Forwarded-For, X-Forwarded-Proto, \
         X-Forwarded-Host\r\nAuthorization: Basic eDp5\r\nCookie: a=b\r\nContent-Length: 3\r\n";
    // These send no X-Forwarded fields here.
    for bed in each([|| Testbed::nginx(""), || Testbed::haproxy("")]) {
        let seen = bed.seen(post_with(LINES, "abc"));
        assert_eq!(seen.field("host"), Some("test"));
        assert_eq!(seen.field("authorization"), Some("Basic eDp5"));
        assert_eq!(seen.field("cookie"), Some("a=b"));
        assert_eq!(seen.body, b"abc");
    }
    let bed = Testbed::drip("", "");
    let seen = bed.seen(post_with(LINES, "abc"));
    assert_eq!(seen.field("host"), Some("test"));
    assert_eq!(seen.field("content-length"), Some("3"));
    assert_eq!(seen.field("authorization"), Some("Basic eDp5"));
    assert_eq!(seen.field("cookie"), Some("a=b"));
    assert_eq!(seen.field("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(seen.field("x-forwarded-proto"), Some("http"));
    assert_eq!(seen.field("x-forwarded-host"), Some("test"));
    assert_eq!(seen.body, b"abc");
}

#[test]
fn line_01_an_origin_cannot_name_the_length_away() {
    for bed in everybody() {
        let received = bed.received(ok_with("Connection: Content-Length\r\n"));
        assert_eq!(received.length(), Some(2));
        assert_eq!(received.body, b"ok");
    }
}

#[test]
fn line_02_the_hops_own_fields_go_no_further() {
    #[rustfmt::skip]
    const DROPPED: [&str; 8] = [
        "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "http2-settings",
        "connection", "transfer-encoding",
    ];
    // nginx and haproxy pass on Proxy-Connection, and haproxy Keep-Alive, TE and Trailer too.
    let bed = Testbed::drip("", "");
    let lines = format!("{HOP}Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n");
    let received = bed.received(ok_with(&format!("{HOP}Upgrade: h2c\r\nX-End: 1\r\n")));
    let with = |connection| bed.seen(get_with(&format!("{lines}{connection}X-End: 1\r\n")));
    for message in [
        received,
        with(""),
        with("Connection: Upgrade, HTTP2-Settings, TE\r\n"),
    ] {
        check_dropped(&message, &DROPPED);
        assert_eq!(message.field("x-end"), Some("1"));
    }
}

/// Fields in which a client claims another origin.
const SPOOFED: &str = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 7.7.7.7, 8.8.8.8\r\nX-Forwarded-Proto: https\r\n\
     X-Forwarded-Host: evil\r\nForwarded: for=6.6.6.6;proto=https\r\nX-Real-IP: 6.6.6.6\r\n";

fn forwarded(bed: &Testbed, lines: &str) -> Vec<(String, String)> {
    #[rustfmt::skip]
    const OF_INTEREST: [&str; 5] = [
        "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip",
    ];
    let mut fields = bed.seen(get_with(lines)).fields;
    fields.retain(|(name, _)| OF_INTEREST.contains(&name.as_str()));
    fields.sort();
    fields
}

// nginx and haproxy send what their files say, so line 3 does not apply to them.
#[test]
fn line_03_what_an_untrusted_peer_says_of_itself_is_discarded() {
    let bed = Testbed::drip("trusted_proxies = [\"10.0.0.0/8\"]", "");
    let ours = pairs(&[
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "test"),
        ("x-forwarded-proto", "http"),
    ]);
    assert_eq!(forwarded(&bed, ""), ours);
    // X-Real-IP is neither in the contract nor in the RFCs, but origins trust it like the others.
    assert_eq!(forwarded(&bed, SPOOFED), ours);
}

#[test]
fn line_03_what_a_trusted_peer_says_is_kept_and_the_peer_appended() {
    let bed = Testbed::drip("trusted_proxies = [\"127.0.0.1\"]", "");
    let seen = forwarded(&bed, SPOOFED);
    let chain: Vec<_> = seen
        .iter()
        .filter(|(name, _)| name == "x-forwarded-for")
        .flat_map(|(_, value)| value.split(','))
        .map(str::trim)
        .collect();
    assert_eq!(chain, ["6.6.6.6", "7.7.7.7", "8.8.8.8", "127.0.0.1"]);
    for kept in pairs(&[
        ("forwarded", "for=6.6.6.6;proto=https"),
        ("x-forwarded-host", "evil"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "6.6.6.6"),
    ]) {
        assert!(seen.contains(&kept), "{kept:?} in {seen:?}");
    }
    let silent = pairs(&[
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "test"),
        ("x-forwarded-proto", "http"),
    ]);
    assert_eq!(forwarded(&bed, ""), silent, "without the fields of a proxy");
}

#[test]
fn line_04_repeated_fields_reach_the_origin_in_order() {
    for bed in everybody() {
        let seen = bed.seen(get_with(
            "Cookie: a=1\r\nX-Many: 1\r\nAccept: text/html\r\nCookie: b=2; c=3\r\nX-Many: \r\nX-Many: 2, 3\r\n\
             Accept: */*\r\nX-Bytes: caf\u{e9} \"quoted\"\r\n",
        ));
        assert_eq!(seen.all("cookie"), ["a=1", "b=2; c=3"]);
        assert_eq!(seen.all("x-many"), ["1", "", "2, 3"]);
        assert_eq!(seen.all("accept"), ["text/html", "*/*"]);
        // UTF-8, as single bytes.
        assert_eq!(seen.field("x-bytes"), Some("caf\u{c3}\u{a9} \"quoted\""));
    }
}

#[test]
fn line_04_repeated_fields_reach_the_client_in_order() {
    for bed in everybody() {
        let received = bed.received(ok_with(
            "Set-Cookie: z=1; Path=/\r\nVary: Accept\r\nSet-Cookie: a=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT\r\n\
             Link: </a>; rel=preload\r\nSet-Cookie: z=3\r\nVary: Cookie\r\nLink: </b>\r\nX-Empty:\r\n\
             WWW-Authenticate: Basic realm=\"a, b\"\r\nWWW-Authenticate: Negotiate\r\n",
        ));
        let cookies = [
            "z=1; Path=/",
            "a=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
            "z=3",
        ];
        assert_eq!(received.all("set-cookie"), cookies);
        assert_eq!(received.all("vary"), ["Accept", "Cookie"]);
        assert_eq!(received.all("link"), ["</a>; rel=preload", "</b>"]);
        assert_eq!(received.all("x-empty"), [""]);
        let offers = ["Basic realm=\"a, b\"", "Negotiate"];
        assert_eq!(received.all("www-authenticate"), offers);
    }
}

#[test]
fn line_05_nothing_is_invented_towards_the_origin() {
    for bed in everybody() {
        let forwarded: &[&str] = if bed.is_drip() {
            &["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"]
        } else {
            &[]
        };
        for method in ["GET", "HEAD", "DELETE", "PROPFIND"] {
            let request = format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n");
            let mut passed = bed.pass(request, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            let expected = [&["host"], forwarded].concat();
            assert_eq!(passed.seen.names(), expected, "{method}");
            assert_eq!(passed.seen.line, format!("{method} / HTTP/1.1"));
            passed.client.answer_to(method);
        }
        let seen = bed.seen(post_with("Content-Length: 1\r\n", "x"));
        let expected = [&["content-length", "host"], forwarded].concat();
        assert_eq!(seen.names(), expected, "POST");
    }
}

#[test]
fn line_05_nothing_is_invented_towards_the_client_but_a_missing_date() {
    const DATE: &str = "Tue, 15 Nov 1994 08:12:31 GMT";
    // nginx writes its own Server, its own Date over the origin's, and Connection: keep-alive.
    for bed in haproxy_and_drip() {
        for status in [
            "200 OK",
            "404 Not Found",
            "503 Service Unavailable",
            "299 Odd One",
        ] {
            let received =
                bed.received(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok"));
            let code = &status[..4];
            // A reason may be dropped (RFC 9112, section 4), but not invented.
            let fits = received.line == format!("HTTP/1.1 {status}")
                || received.line == format!("HTTP/1.1 {code}");
            assert!(fits, "{:?} for {status:?}", received.line);
            // haproxy adds no Date.
            let expected: &[&str] = if bed.is_drip() {
                &["content-length", "date"]
            } else {
                &["content-length"]
            };
            assert_eq!(received.names(), expected, "{status}");
        }
        let received = bed.received(ok_with(&format!("Server: tiny\r\nDate: {DATE}\r\n")));
        assert_eq!(received.names(), ["content-length", "date", "server"]);
        assert_eq!(received.field("date"), Some(DATE));
        assert_eq!(received.field("server"), Some("tiny"));
    }
}

/// Returns bytes that begin like gzip, so that a proxy that unpacks or sniffs them fails the test.
fn gzip_like(length: usize) -> Vec<u8> {
    let mut body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec();
    body.extend(noise(length));
    body
}

#[test]
fn line_06_bodies_a_range_and_what_validates_it_pass_as_they_are() {
    const ASKED: [(&str, &str); 7] = [
        ("content-encoding", "gzip"),
        ("content-type", "x/y"),
        ("range", "bytes=0-10,-5"),
        ("if-range", "W/\"x\""),
        ("if-none-match", "\"a\", W/\"b\""),
        ("if-modified-since", "Tue, 15 Nov 1994 08:12:31 GMT"),
        ("accept-encoding", "br;q=1.0, gzip;q=0"),
    ];
    const END_TO_END: [(&str, &str); 7] = [
        ("content-encoding", "gzip"),
        ("etag", "W/\"a b\""),
        ("vary", "Accept-Encoding, Cookie"),
        ("content-range", "bytes 5-14/1000"),
        ("accept-ranges", "bytes"),
        ("last-modified", "Tue, 15 Nov 1994 08:12:31 GMT"),
        ("cache-control", "no-transform"),
    ];
    let lines = |of: &[(&str, &str)]| -> String {
        let line = |(name, value): &(&str, &str)| format!("{name}: {value}\r\n");
        of.iter().map(line).collect()
    };
    for bed in everybody() {
        for length in [0, 1, 4096, 65_537, MB] {
            let (body, head) = (gzip_like(length), lines(&END_TO_END));
            let framing = format!("Content-Length: {}\r\n", body.len());
            let answer =
                format!("HTTP/1.1 206 Partial Content\r\nConnection: close\r\n{head}{framing}\r\n");
            let request = post_with(&(lines(&ASKED) + &framing), "");
            let mut client = bed.ask(request);
            let mut sender = Raw::over(client.sender());
            let (seen, received) = thread::scope(|scope| {
                scope.spawn(|| sender.send(&body));
                let mut origin = bed.origin.accept();
                let seen = origin.request();
                let answer = [answer.as_bytes(), &body].concat();
                scope.spawn(move || origin.send(answer));
                (seen, client.answer())
            });
            for (name, value) in ASKED {
                assert_eq!(seen.field(name), Some(value));
            }
            assert!(seen.body == body, "{length} bytes differ at the origin");
            assert_eq!(received.line, "HTTP/1.1 206 Partial Content");
            for (name, value) in END_TO_END {
                assert_eq!(received.field(name), Some(value));
            }
            assert!(received.body == body, "{length} bytes differ at the client");
        }
    }
}
