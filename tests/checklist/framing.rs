//! Line 9: what a request in chunks that break off, or empty lines before one, do to both connections. `smuggling.rs` has
//! the requests that can be read in two ways.

use super::bed::{GET, LAST, OK, everybody, nginx_and_drip, post_with};

/// What an origin that reads the request differently would take for the next request.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n";

#[test]
fn line_09_a_bad_chunk_after_good_ones_ends_both_connections() {
    for bed in nginx_and_drip() {
        let mut client = bed.ask(post_with(
            "Transfer-Encoding: chunked\r\n",
            "5\r\nhello\r\n",
        ));
        let mut origin = bed.origin.accept();
        assert!(origin.head().is_chunked(), "{}", bed.who);
        assert_eq!(origin.exactly(10), b"5\r\nhello\r\n", "{}", bed.who);
        client.send(format!("zz\r\nhello\r\n0\r\n\r\n{SMUGGLED}"));
        assert_eq!(client.answer().status(), 400, "{}", bed.who);
        assert_eq!(client.end().0, b"", "{}", bed.who);
        assert_eq!(origin.end().0, b"", "{}", bed.who);
        bed.check_unseen();
    }
}

#[test]
fn line_09_an_empty_line_before_a_request_is_no_offence() {
    // RFC 9112, section 2.2: at least one should be ignored; and what follows good framing is the next request.
    for bed in everybody() {
        let mut client = bed.ask(post_with("Content-Length: 5\r\n", "hello") + "\r\n" + GET);
        let mut origin = bed.origin.accept();
        assert_eq!(origin.request().body, b"hello", "{}", bed.who);
        origin.send(LAST);
        assert_eq!(client.answer().body, b"ok", "{}", bed.who);
        let mut origin = bed.origin.accept();
        assert_eq!(origin.request().line, "GET / HTTP/1.1", "{}", bed.who);
        origin.send(OK);
        assert_eq!(client.answer().body, b"ok", "{}", bed.who);
    }
}
