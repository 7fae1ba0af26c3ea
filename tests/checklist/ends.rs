//! Checklist line 12: how bodies end.

use super::bed::{GET, MB, Testbed, everybody, noise, post_with};
use crate::support::{Raw, SOON};

#[test]
fn line_12_a_body_that_ends_with_the_connection_arrives_whole() {
    for bed in everybody() {
        for (version, length) in [("1.1", 5), ("1.0", 5), ("1.1", 0), ("1.0", MB), ("1.1", MB)] {
            let body = noise(length);
            let mut client = bed.ask(GET);
            let mut origin = bed.origin.accept();
            origin.head();
            let sent = body.clone();
            let received = std::thread::scope(|scope| {
                scope.spawn(move || {
                    origin.send(format!("HTTP/{version} 200 OK\r\nX-A: 1\r\n\r\n"));
                    origin.send(sent);
                    drop(origin);
                });
                client.answer()
            });
            assert_eq!(received.field("x-a"), Some("1"));
            assert!(received.body == body, "{version}, {length} bytes");
        }
    }
}

/// Returns the client's part of a response that the origin breaks off after `part`.
fn broken_off(bed: &Testbed, part: &str, end: fn(Raw)) -> std::io::Result<Vec<u8>> {
    let mut client = bed.ask(GET);
    let mut origin = bed.origin.accept();
    origin.head();
    origin.send(part);
    // The origin ends only after the client has received all earlier bytes.
    let at = part.find("\r\n\r\n").expect("a head") + 4;
    if part.len() > at {
        client.wait_for("part");
    }
    end(origin);
    let received = client.try_answer_to("GET", SOON);
    received.map(|received| received.body)
}

#[test]
fn line_12_an_answer_cut_short_of_its_length_or_its_last_chunk_is_no_clean_end() {
    for bed in everybody() {
        for part in [
            "Content-Length: 100\r\n\r\npart",
            "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
            "Transfer-Encoding: chunked\r\n\r\n64\r\npart",
            "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n5",
            "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n0\r\n",
            "Transfer-Encoding: chunked\r\n\r\n4\r\npart",
        ] {
            let part = format!("HTTP/1.1 200 OK\r\n{part}");
            for end in [drop, Raw::reset] {
                assert!(broken_off(&bed, &part, end).is_err(), "{part:?}");
            }
        }
        let part = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n";
        let ended = broken_off(&bed, part, |mut origin| {
            origin.send("zz\r\npart\r\n0\r\n\r\n");
        });
        assert!(ended.is_err(), "nonsense for a chunk: {ended:?}");
    }
}

#[test]
fn line_12_a_body_that_ends_with_a_reset_is_no_clean_end() {
    // nginx and haproxy treat a reset as the end.
    let bed = Testbed::drip("", "");
    let ended = broken_off(&bed, "HTTP/1.1 200 OK\r\n\r\npart", Raw::reset);
    assert!(ended.is_err(), "{ended:?}");
}

#[test]
fn line_12_a_request_cut_short_never_reaches_the_origin_whole() {
    for bed in everybody() {
        for (framing, part) in [
            ("Content-Length: 100", "part"),
            ("Transfer-Encoding: chunked", "4\r\npart\r\n"),
        ] {
            let client = bed.ask(post_with(&format!("{framing}\r\n"), part));
            let mut origin = bed.origin.accept();
            origin.head();
            origin.wait_for("part");
            drop(client);
            let (rest, _) = origin.end();
            assert!(!rest.ends_with(b"0\r\n\r\n"), "{framing}");
        }
    }
}
