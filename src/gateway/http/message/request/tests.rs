use super::super::lines::{empty_lines, end_of_head};
use super::*;

fn bytes(lines: &str) -> Vec<u8> {
    format!("{}\r\n\r\n", lines.replace('\n', "\r\n")).into_bytes()
}

fn parse(bytes: &[u8]) -> Result<RequestHead, BadRequest> {
    let (head, end) = RequestHead::parse(bytes)?.expect("a whole head");
    assert_eq!(end, bytes.len());
    Ok(head)
}

fn length(bytes: &[u8]) -> Result<BodyLength, BadRequest> {
    parse(bytes).map(|head| head.length())
}

fn refusal(lines: &str) -> Option<BadRequest> {
    parse(&bytes(lines)).err()
}

#[test]
fn a_head_ends_at_its_first_empty_line_however_it_comes() {
    for whole in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\nhost: a\n\n",
        "GET /\n\r\n",
        "\n\n",
    ] {
        let bytes = format!("{whole}POST / HTTP/1.1\r\n\r\n").into_bytes();
        for come in 0..bytes.len() {
            for searched in 0..come {
                let expected = (come >= whole.len()).then_some(whole.len());
                if searched < whole.len() {
                    assert_eq!(
                        end_of_head(&bytes[..come], searched),
                        expected,
                        "{whole:?} {come} {searched}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_head_is_parsed_once_it_is_whole() {
    let whole = b"POST /a?b HTTP/1.1\r\nHost: a\r\ncontent-length: 5\r\n\r\n";
    let more = [&whole[..], b"hello"].concat();
    for come in 0..whole.len() {
        assert!(
            RequestHead::parse(&more[..come]).unwrap().is_none(),
            "{come}"
        );
    }
    for come in whole.len()..=more.len() {
        let (head, end) = RequestHead::parse(&more[..come]).unwrap().unwrap();
        assert_eq!(end, whole.len());
        assert_eq!(head.method(), b"POST");
        assert_eq!(head.target(), b"/a?b");
        assert_eq!(head.version(), Version::Http11);
        assert_eq!(head.length(), BodyLength::Length(5));
        let fields: Vec<_> = head.fields().iter().collect();
        let expected: [(_, &[u8], &[u8]); 2] = [
            (FieldName::Host, b"Host", b"a"),
            (FieldName::ContentLength, b"content-length", b"5"),
        ];
        assert_eq!(fields, expected);
    }
}

#[test]
fn empty_lines_stand_before_a_head_and_are_none_of_it() {
    for (bytes, empty) in [
        (&b"GET /"[..], 0),
        (b"\r\nGET /", 2),
        (b"\r\n\r\n", 4),
        (b"\r\n\r", 2),
        (b"\r", 0),
        (b"\n", 0),
        (b"", 0),
    ] {
        assert_eq!(empty_lines(bytes), empty, "{bytes:?}");
    }
    assert!(RequestHead::parse(b"\r").unwrap().is_none());
    for before in ["\r\n", "\n", "\r\r\n"] {
        let bytes = format!("{before}GET / HTTP/1.1\r\n\r\n");
        let parsed = RequestHead::parse(bytes.as_bytes());
        assert_eq!(parsed.err(), Some(BadRequest::Malformed), "{before:?}");
    }
}

#[test]
fn a_head_tells_how_its_body_is_framed() {
    let cases = [
        ("GET / HTTP/1.1\nhost: a", BodyLength::None),
        ("POST / HTTP/1.1\ncontent-length: 0", BodyLength::Length(0)),
        ("POST / HTTP/1.1\ncontent-length: 5", BodyLength::Length(5)),
        ("POST / HTTP/1.1\ncontent-length: 05", BodyLength::Length(5)),
        ("POST / HTTP/1.0\nContent-Length:5 ", BodyLength::Length(5)),
        (
            "POST / HTTP/1.1\ncontent-length: 5\ncontent-length: 5",
            BodyLength::Length(5),
        ),
        (
            "POST / HTTP/1.1\ncontent-length: 18446744073709551615",
            BodyLength::Length(u64::MAX),
        ),
        (
            "POST / HTTP/1.1\ntransfer-encoding: chunked",
            BodyLength::Chunked,
        ),
        (
            "POST / HTTP/1.1\nTRANSFER-ENCODING:\tChunked",
            BodyLength::Chunked,
        ),
        (
            "POST / HTTP/1.1\nx-content-length: x\nx: content-length: 9",
            BodyLength::None,
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(length(&bytes(lines)), Ok(expected), "{lines}");
    }
}

#[test]
fn a_method_that_is_not_in_capitals_is_refused() {
    for method in ["post", "Post", "POSt", "gET", "m-search", "connect"] {
        let found = refusal(&format!("{method} / HTTP/1.1\nhost: a"));
        assert_eq!(found, Some(BadRequest::Method), "{method}");
        let request = http::Request::builder().method(method).uri("http://a/");
        let found = of_http2(request, false).err();
        assert_eq!(found, Some(BadRequest::Method), "{method}");
    }
    for method in ["POST", "M-SEARCH", "RPC_IN_DATA", "X!#$%&'*+.^_`|~0"] {
        let lines = format!("{method} / HTTP/1.1\nhost: a");
        assert_eq!(refusal(&lines), None, "{method}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    for lines in [
        "content-length: 5\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\ncontent-length: 5",
        "content-length: 5\ncontent-length: 6",
        "content-length: 3\ncontent-length: 03",
        "content-length: 5\ncontent-length: 5\ncontent-length: 6",
        "content-length: 5, 5",
        "content-length: +5",
        "content-length: -5",
        "content-length: 0x5",
        "content-length: 5 5",
        "content-length:",
        "content-length: 5\ncontent-length:",
        "content-length: 18446744073709551616",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: chunked\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\ntransfer-encoding: identity",
        "transfer-encoding: identity",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked;q=1",
        "transfer-encoding: \"chunked\"",
        "transfer-encoding:",
    ] {
        let found = refusal(&format!("POST / HTTP/1.1\nhost: a\n{lines}"));
        assert_eq!(found, Some(BadRequest::Length), "{lines:?}");
    }
    for lines in [
        "transfer-encoding : chunked",
        "content-length : 5",
        "content-length\t: 5",
        "a: b\n c: d",
        "a: b\n\tcontent-length: 5",
        " a: b",
        "no colon",
        ": no name",
        "na\u{e9}me: a",
        "(a): b",
        "a: \u{0}",
        "a: \u{7f}",
    ] {
        let found = refusal(&format!("POST / HTTP/1.1\nhost: a\n{lines}"));
        assert_eq!(found, Some(BadRequest::Malformed), "{lines:?}");
    }
    for value in ["\x0c5", "5\x0c", "5\r", "\r5", "\x0b5"] {
        for (name, value) in [
            ("content-length", value.to_owned()),
            ("transfer-encoding", value.replace('5', "chunked")),
        ] {
            let found = refusal(&format!("POST / HTTP/1.1\n{name}:{value}"));
            assert_eq!(found, Some(BadRequest::Malformed), "{name} {value:?}");
        }
    }
    let old = refusal("POST / HTTP/1.0\ntransfer-encoding: chunked");
    assert_eq!(old, Some(BadRequest::Length));
    for bare in [
        "GET / HTTP/1.1\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\nb: c\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n\n",
        "GET / HTTP/1.1\r\nhost:\n\r\n",
        "GET / HTTP/1.1\n\r\n",
        "GET / HTTP/1.1\r\n\n",
        "GET / HTTP/1.1\n\n",
    ] {
        let found = parse(bare.as_bytes()).err();
        assert_eq!(found, Some(BadRequest::Malformed), "{bare:?}");
    }
}

#[test]
fn so_many_fields_are_taken_and_one_more_is_too_large() {
    let fields = |count| bytes(&format!("GET / HTTP/1.1{}", "\na: b".repeat(count)));
    let most = parse(&fields(256)).unwrap();
    assert_eq!(most.fields().iter().count(), 256);
    assert_eq!(parse(&fields(257)).err(), Some(BadRequest::HeadTooLarge));
}

#[test]
fn a_target_is_a_path_or_an_absolute_url_as_it_was_sent() {
    let cases: [(&str, Option<&str>, &str); 14] = [
        ("/", None, "/"),
        ("/a//b/../%2F?x=1&y", None, "/a//b/../%2F?x=1&y"),
        ("/?", None, "/?"),
        ("//a/b", None, "//a/b"),
        ("*", None, "*"),
        ("/\"<>`{}|\\^[]", None, "/\"<>`{}|\\^[]"),
        ("/caf\u{e9}", None, "/caf\u{e9}"),
        ("http://a", Some("a"), ""),
        ("http://a/b?c", Some("a"), "/b?c"),
        ("http://a:80?c", Some("a:80"), "?c"),
        ("HTTPS://a/", Some("a"), "/"),
        ("ws+x.y-1://[::1]:8/", Some("[::1]:8"), "/"),
        ("http://u@a/", Some("u@a"), "/"),
        ("http://a//b", Some("a"), "//b"),
    ];
    for (target, authority, path) in cases {
        let head = parse(&bytes(&format!("GET {target} HTTP/1.1"))).unwrap();
        assert_eq!(head.target(), target.as_bytes());
        assert_eq!(head.authority(), authority.map(str::as_bytes), "{target}");
        assert_eq!(head.path_and_query(), path.as_bytes(), "{target}");
    }
    // A target need not be text.
    let head = parse(b"GET http://a/caf\xe9?\xff HTTP/1.1\r\nx: \xe9\r\n\r\n").unwrap();
    assert_eq!(head.target(), b"http://a/caf\xe9?\xff");
    assert_eq!(head.path_and_query(), b"/caf\xe9?\xff");
    assert_eq!(head.fields().first(FieldName::Other), Some(&b"\xe9"[..]));
    let tunnel = parse(&bytes("CONNECT a:443 HTTP/1.1")).unwrap();
    assert_eq!((tunnel.target(), tunnel.authority()), (&b"a:443"[..], None));
}

#[test]
fn a_refusal_says_what_would_be_right() {
    for (line, expected) in [
        ("GET /a#b HTTP/1.1", BadRequest::TargetByte),
        ("GET http://a/#b HTTP/1.1", BadRequest::TargetByte),
        ("GET /a b HTTP/1.1", BadRequest::TargetByte),
        ("GET  / HTTP/1.1", BadRequest::TargetByte),
        ("GET /  HTTP/1.1", BadRequest::TargetByte),
        ("GET /\u{1} HTTP/1.0", BadRequest::TargetByte),
        ("GET /\u{7f} HTTP/1.1", BadRequest::TargetByte),
        ("GET /\t HTTP/1.1", BadRequest::TargetByte),
        ("GET a HTTP/1.1", BadRequest::Target),
        ("GET a:80 HTTP/1.1", BadRequest::Target),
        ("GET ** HTTP/1.1", BadRequest::Target),
        ("GET ?a HTTP/1.1", BadRequest::Target),
        ("GET http:/a HTTP/1.1", BadRequest::Target),
        ("GET http:// HTTP/1.1", BadRequest::Target),
        ("GET http:///a HTTP/1.1", BadRequest::Target),
        ("GET 1http://a HTTP/1.1", BadRequest::Target),
        ("GET ://a HTTP/1.1", BadRequest::Target),
        ("GET /", BadRequest::Malformed),
        ("GET / HTTP/2.0", BadRequest::Malformed),
        ("GET / HTTP/1.2", BadRequest::Malformed),
        ("GET / HTTP/1.11", BadRequest::Malformed),
        ("GET / http/1.1", BadRequest::Malformed),
        ("G\u{e9}T / HTTP/1.1", BadRequest::Malformed),
        (" GET / HTTP/1.1", BadRequest::Malformed),
        ("GET\t/ HTTP/1.1", BadRequest::Malformed),
    ] {
        assert_eq!(refusal(line), Some(expected), "{line:?}");
    }
    for line in [
        &b"G\xe9T / HTTP/1.1"[..],
        b"G\xe9T /\xe9 HTTP/1.1",
        b"GET /\xe9 HTTP/1.\xe9",
        b"\xe9 / HTTP/1.1",
    ] {
        let found = parse(&[line, b"\r\n\r\n"].concat()).err();
        assert_eq!(found, Some(BadRequest::Malformed), "{line:?}");
    }
    assert_eq!(BadRequest::TooSlow.status(), 408);
    assert_eq!(BadRequest::HeadTooLarge.status(), 431);
    assert_eq!(BadRequest::Length.status(), 400);
}

#[test]
fn a_connection_is_kept_as_its_client_says() {
    for (lines, keeps) in [
        ("GET / HTTP/1.1", true),
        ("GET / HTTP/1.1\nconnection: close", false),
        ("GET / HTTP/1.1\nconnection: x, Close", false),
        (
            "GET / HTTP/1.1\nconnection: keep-alive\nconnection: close",
            false,
        ),
        ("GET / HTTP/1.1\nconnection: closed", true),
        ("GET / HTTP/1.1\nconnection:", true),
        ("GET / HTTP/1.0", false),
        ("GET / HTTP/1.0\nconnection: Keep-Alive", true),
        ("GET / HTTP/1.0\nconnection: keep-alive, close", false),
        (
            "GET / HTTP/1.0\nconnection: close\nconnection: keep-alive",
            false,
        ),
        ("GET / HTTP/1.0\nkeep-alive: 5", false),
    ] {
        let head = parse(&bytes(lines)).unwrap();
        assert_eq!(head.keeps_alive(), keeps, "{lines}");
    }
}

#[test]
fn what_a_client_waits_for_and_takes_is_told() {
    for (lines, expects, trailers) in [
        ("GET / HTTP/1.1", false, false),
        (
            "GET / HTTP/1.1\nexpect: 100-continue\nte: trailers",
            true,
            true,
        ),
        (
            "GET / HTTP/1.0\nexpect: 100-continue\nte: trailers",
            false,
            false,
        ),
        ("GET / HTTP/1.1\nte: gzip, Trailers", false, true),
        ("GET / HTTP/1.1\nte: trailersx", false, false),
    ] {
        let head = parse(&bytes(lines)).unwrap();
        assert_eq!(head.expects_continue(), expects, "{lines}");
        assert_eq!(head.takes_trailers(), trailers, "{lines}");
    }
    for (method, idempotent) in [
        ("GET", true),
        ("HEAD", true),
        ("PUT", true),
        ("DELETE", true),
        ("OPTIONS", true),
        ("TRACE", true),
        ("POST", false),
        ("PATCH", false),
    ] {
        let head = parse(&bytes(&format!("{method} / HTTP/1.1"))).unwrap();
        assert_eq!(head.is_idempotent(), idempotent, "{method}");
    }
}

fn of_http2(request: http::request::Builder, body: bool) -> Result<RequestHead, BadRequest> {
    let (parts, ()) = request.body(()).unwrap().into_parts();
    RequestHead::of_http2(&parts, body)
}

#[test]
fn a_request_of_http2_reads_like_any_other() {
    let request = http::Request::post("https://a.example:8443/b?c")
        .header("cookie", "a=1")
        .header("x-one", "1")
        .header("cookie", "b=2; c=3")
        .header("x-one", "2");
    let head = of_http2(request, true).unwrap();
    assert_eq!((head.method(), head.target()), (&b"POST"[..], &b"/b?c"[..]));
    assert_eq!(head.path_and_query(), b"/b?c");
    assert_eq!(head.authority(), Some(&b"a.example:8443"[..]));
    assert_eq!(head.version(), Version::Http2);
    assert_eq!(head.length(), BodyLength::Chunked);
    assert!(head.takes_trailers() && head.keeps_alive());
    let cookies: Vec<_> = head.fields().all(FieldName::Cookie).collect();
    assert_eq!(cookies, [b"a=1; b=2; c=3"]);
    let ones: Vec<_> = head.fields().named("X-One").collect();
    assert_eq!(ones, [b"1", b"2"]);
}

#[test]
fn lengths_of_http2_are_read_as_strictly() {
    let with = |lengths: &[&str], body| {
        let request = http::Request::post("https://a/");
        let request = lengths.iter().fold(request, |request, length| {
            request.header("content-length", *length)
        });
        of_http2(request, body).map(|head| head.length())
    };
    assert_eq!(with(&[], false), Ok(BodyLength::None));
    assert_eq!(with(&[], true), Ok(BodyLength::Chunked));
    assert_eq!(with(&["0"], false), Ok(BodyLength::Length(0)));
    assert_eq!(with(&["5"], true), Ok(BodyLength::Length(5)));
    assert_eq!(with(&["5", "5"], true), Ok(BodyLength::Length(5)));
    for lengths in [&["5", "6"][..], &["5", "05"], &["5, 5"], &["+5"], &[""]] {
        assert_eq!(with(lengths, true), Err(BadRequest::Length), "{lengths:?}");
    }
}
