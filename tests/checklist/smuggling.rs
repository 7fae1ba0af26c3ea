//! Checklist line 9: published ways to make one request look like two.
//!
//! Each file of tests/corpus/smuggling has the bytes of one client; its name says what is odd. The
//! proxy must refuse it and close the connection, so that the hidden request to `/smuggled` is
//! never served. Files whose names begin with `fine` are one valid request each, and must be
//! forwarded as one.
//!
//! A body, if there is one, is `hello`.

use std::fs;
use std::path::Path;

use super::bed::{GET, LAST, OK, Testbed, everybody, nginx_and_drip, post_with};
use crate::support::Raw;
use crate::support::night::some_of;

/// Bytes that the test itself sends to the origin, after everything that the proxy has sent.
const MARK: &[u8] = b"mark";

/// Returns the files: name, whether it is fine, and bytes.
pub fn corpus() -> Vec<(String, bool, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/smuggling");
    let files = fs::read_dir(&folder).expect("the corpus");
    let mut files: Vec<_> = files
        .map(|file| {
            let entry = file.expect("a file");
            let name = entry.file_name().to_string_lossy().into_owned();
            let bytes = fs::read(entry.path()).expect("a file");
            let fine = name.starts_with("fine-");
            (name, fine, bytes)
        })
        .collect();
    files.sort();
    assert!(files.len() > 200, "{} files are not all", files.len());
    files
}

/// Returns a proxy with short timeouts, for requests that never end.
fn impatient() -> Testbed {
    Testbed::drip("header_timeout = \"500ms\"\nbody_timeout = \"500ms\"", "")
}

/// Checks for a 4xx and the end. The origin must receive no complete request.
fn check_refused(bed: &Testbed, mut client: Raw, name: &str) {
    let answer = client.answer();
    let status = answer.status();
    let is_framing = ["cl-", "te-", "chunk-", "head-"]
        .iter()
        .any(|it| name.starts_with(it));
    let expected = if is_framing { 400..401 } else { 400..500 };
    assert!(expected.contains(&status), "{name}: {answer:?}");
    let (rest, _) = client.end();
    let rest = String::from_utf8_lossy(&rest).into_owned();
    assert_eq!(rest, "", "{name}: one answer, then the end");
    // The proxy's own connection to the origin was opened before this one.
    Raw::connect(bed.origin.address).send(MARK);
    loop {
        let (seen, _) = bed.origin.accept().end();
        if seen == MARK {
            break;
        }
        let seen = String::from_utf8_lossy(&seen).to_lowercase();
        // The beginning of a chunked body may have been forwarded before its end arrived.
        let begun = seen.contains("transfer-encoding: chunked\r\n") && !seen.contains("\r\n0\r\n");
        assert!(begun || seen.is_empty(), "{name}: {seen:?}");
        assert!(!seen.contains("smuggled"), "{name}: {seen:?}");
    }
    bed.check_unseen();
}

/// Checks one request and its response. The next bytes must be the next request.
fn check_one(bed: &Testbed, mut client: Raw, name: &str, sent: &[u8]) {
    let mut origin = bed.origin.accept();
    let seen = origin.request();
    let has_body = sent.windows(5).any(|bytes| bytes == b"hello") || name.contains("chunk");
    let body: &[u8] = if has_body { b"hello" } else { b"" };
    assert_eq!(seen.body, body, "{name}: {seen:?}");
    let lengths = seen.all("content-length");
    let codings = seen.all("transfer-encoding");
    assert!(lengths.len() + codings.len() < 2, "{name}: {seen:?}");
    let is_length = lengths.iter().all(|it| *it == body.len().to_string());
    assert!(is_length, "{name}: {seen:?}");
    let is_chunked = codings.iter().all(|it| *it == "chunked");
    assert!(is_chunked, "{name}: {seen:?}");
    assert_eq!(seen.field("host"), Some("test"), "{name}: {seen:?}");
    let method = seen.line.split(' ').next().unwrap_or_default();
    let body = if method == "HEAD" { "" } else { "ok" };
    origin.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{body}"
    ));
    let received = client.answer_to(method);
    assert_eq!(received.status(), 200, "{name}");
    assert_eq!(received.body, body.as_bytes(), "{name}");
    let (more, _) = origin.end();
    assert_eq!(more, b"", "{name}: nothing follows");
    if name != "fine-http-1.0" {
        client.send(GET);
        let mut origin = bed.origin.accept();
        assert_eq!(origin.head().line, "GET / HTTP/1.1", "{name}");
        origin.send(LAST);
        assert_eq!(client.answer().body, b"ok", "{name}");
    }
}

#[test]
fn line_09_what_could_be_two_requests_is_refused_and_never_reaches_the_origin() {
    let bed = impatient();
    for (name, _, bytes) in corpus().iter().filter(|(_, fine, _)| !fine) {
        check_refused(&bed, bed.ask(bytes), name);
    }
}

#[test]
fn line_09_nor_does_it_byte_by_byte() {
    let bed = impatient();
    let corpus = corpus();
    for (name, _, bytes) in some_of(corpus.iter().filter(|(_, fine, _)| !fine), 8) {
        check_refused(&bed, bed.ask_byte_by_byte(bytes), name);
    }
}

#[test]
fn line_09_what_is_one_request_goes_on_as_one() {
    let bed = impatient();
    for (name, _, bytes) in corpus().iter().filter(|(_, fine, _)| *fine) {
        check_one(&bed, bed.ask(bytes), name, bytes);
        check_one(&bed, bed.ask_byte_by_byte(bytes), name, bytes);
    }
}

/// Bytes that an origin with another parser would take for the next request.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n";

#[test]
fn line_09_a_bad_chunk_after_good_ones_ends_both_connections() {
    for bed in nginx_and_drip() {
        let begun = post_with("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n");
        let mut client = bed.ask(begun);
        let mut origin = bed.origin.accept();
        assert!(origin.head().is_chunked());
        assert_eq!(origin.exactly(10), b"5\r\nhello\r\n");
        client.send(format!("zz\r\nhello\r\n0\r\n\r\n{SMUGGLED}"));
        assert_eq!(client.answer().status(), 400);
        assert_eq!(client.end().0, b"");
        assert_eq!(origin.end().0, b"");
        bed.check_unseen();
    }
}

#[test]
fn line_09_an_empty_line_before_a_request_is_no_offence() {
    // RFC 9112, section 2.2: at least one empty line should be ignored. After valid framing the
    // next request follows.
    for bed in everybody() {
        let mut client = bed.ask(post_with("Content-Length: 5\r\n", "hello") + "\r\n" + GET);
        let mut origin = bed.origin.accept();
        assert_eq!(origin.request().body, b"hello");
        origin.send(LAST);
        assert_eq!(client.answer().body, b"ok");
        let mut origin = bed.origin.accept();
        assert_eq!(origin.request().line, "GET / HTTP/1.1");
        origin.send(OK);
        assert_eq!(client.answer().body, b"ok");
    }
}
