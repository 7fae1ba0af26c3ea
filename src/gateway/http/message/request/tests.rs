//! Tests of the request parser.

use super::super::framing::end_of_head;
use super::super::test_heads::bytes;
use super::*;

fn parse(bytes: &[u8]) -> Result<RequestHead, BadRequest> {
    let (head, end) = RequestHead::parse(bytes)?.expect("a whole head");
    assert_eq!(end, bytes.len());
    Ok(head)
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
        for arrived in 0..bytes.len() {
            let expected = (arrived >= whole.len()).then_some(whole.len());
            for searched in 0..arrived.min(whole.len()) {
                let found = end_of_head(&bytes[..arrived], searched);
                assert_eq!(found, expected, "{whole:?} {arrived} {searched}");
            }
        }
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
    // A target may have bytes that are not ASCII.
    let head = parse(b"GET http://a/caf\xe9?\xff HTTP/1.1\r\nx: \xe9\r\n\r\n").unwrap();
    assert_eq!(head.target(), b"http://a/caf\xe9?\xff");
    assert_eq!(head.path_and_query(), b"/caf\xe9?\xff");
    assert_eq!(head.fields().first(FieldName::Other), Some(&b"\xe9"[..]));
    let tunnel = parse(&bytes("CONNECT a:443 HTTP/1.1")).unwrap();
    assert_eq!((tunnel.target(), tunnel.authority()), (&b"a:443"[..], None));
}

#[test]
fn a_refusal_says_what_would_be_right() {
    for (expected, lines) in [
        (
            BadRequest::TargetByte,
            "GET /a#b HTTP/1.1|GET http://a/#b HTTP/1.1|GET /a b HTTP/1.1|GET  / HTTP/1.1|\
             GET /  HTTP/1.1|GET /\u{1} HTTP/1.0|GET /\u{7f} HTTP/1.1|GET /\t HTTP/1.1",
        ),
        (
            BadRequest::Target,
            "GET a HTTP/1.1|GET a:80 HTTP/1.1|GET ** HTTP/1.1|GET ?a HTTP/1.1|\
             GET http:/a HTTP/1.1|GET http:// HTTP/1.1|GET http:///a HTTP/1.1|\
             GET 1http://a HTTP/1.1|GET ://a HTTP/1.1",
        ),
        (
            BadRequest::Malformed,
            "GET /|GET / HTTP/2.0|GET / HTTP/1.2|GET / HTTP/1.11|GET / http/1.1|\
             G\u{e9}T / HTTP/1.1| GET / HTTP/1.1|GET\t/ HTTP/1.1",
        ),
    ] {
        for line in lines.split('|') {
            assert_eq!(refusal(line), Some(expected), "{line:?}");
        }
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
    for (keeps, cases) in [
        (
            true,
            "1.1|1.1\nconnection: closed|1.1\nconnection:|1.0\nconnection: Keep-Alive",
        ),
        (
            false,
            "1.0|1.1\nconnection: close|1.1\nconnection: x, Close|\
             1.1\nconnection: keep-alive\nconnection: close|1.0\nconnection: keep-alive, close|\
             1.0\nconnection: close\nconnection: keep-alive|1.0\nconnection: x\nkeep-alive: 5",
        ),
    ] {
        for lines in cases.split('|') {
            let head = parse(&bytes(&format!("GET / HTTP/{lines}"))).unwrap();
            assert_eq!(head.keeps_alive(), keeps, "{lines:?}");
        }
    }
}

#[test]
fn expectations_and_accepted_trailers_are_parsed() {
    for (lines, expects, trailers) in [
        ("1.1", false, false),
        ("1.1\nexpect: 100-continue\nte: trailers", true, true),
        ("1.0\nexpect: 100-continue\nte: trailers", false, false),
        ("1.1\nte: gzip, Trailers", false, true),
        ("1.1\nte: trailersx", false, false),
    ] {
        let head = parse(&bytes(&format!("GET / HTTP/{lines}"))).unwrap();
        assert_eq!(head.expects_continue(), expects, "{lines}");
        assert_eq!(head.takes_trailers(), trailers, "{lines}");
    }
    for method in "GET HEAD PUT DELETE OPTIONS TRACE POST PATCH".split(' ') {
        let head = parse(&bytes(&format!("{method} / HTTP/1.1"))).unwrap();
        let is_idempotent = !["POST", "PATCH"].contains(&method);
        assert_eq!(head.is_idempotent(), is_idempotent, "{method}");
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
    let fields = head.fields();
    assert!(fields.all(FieldName::Cookie).eq([b"a=1; b=2; c=3"]));
    assert!(fields.named("X-One").eq([b"1", b"2"]));
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
