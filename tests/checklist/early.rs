//! Line 16: early answers, and uploads that arrive early.

use std::thread;

use super::bed::{Bed, LAST, MB, everybody, haproxy_and_drip, nginx_and_drip, noise, post_with};
use crate::support::Raw;

const EARLY: &str =
    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbig\n";

/// A client that uploads 10 MB to an origin that reads only the head, answers at once, and then does
/// `then`.
fn early_answer(bed: &Bed, then: fn(Raw) -> Option<Raw>, reads_last: bool) {
    const SIZE: usize = 10 * MB;
    let mut client = bed.ask(post_with(&format!("Content-Length: {SIZE}\r\n"), "x"));
    let mut sender = client.sender();
    let mut origin = bed.origin.accept();
    origin.head();
    let sending = thread::spawn(move || {
        let piece = noise(64 * 1024);
        // The gateway may have closed; what matters is what the client has then.
        (0..SIZE / piece.len()).try_for_each(|_| std::io::Write::write_all(&mut sender, &piece))
    });
    origin.send(EARLY);
    let _held = then(origin);
    if reads_last {
        let _how = sending.join().expect("no panic");
    }
    let told = client.answer();
    assert_eq!(
        (told.status(), told.body.as_slice()),
        (413, b"big\n".as_slice()),
        "{}",
        bed.who
    );
}

#[test]
fn line_16_an_early_413_reaches_a_client_that_still_uploads() {
    for bed in everybody() {
        early_answer(&bed, Some, false);
    }
    // nginx takes the origin's reset for its response if it is writing when the reset comes.
    for bed in haproxy_and_drip() {
        early_answer(
            &bed,
            |origin| {
                drop(origin);
                None
            },
            false,
        );
    }
}

#[test]
fn line_16_an_early_413_is_not_lost_by_a_reset_before_the_client_reads_it() {
    // haproxy resets the connection.
    for bed in nginx_and_drip() {
        early_answer(&bed, Some, true);
    }
    let bed = Bed::drip("", "");
    early_answer(
        &bed,
        |origin| {
            drop(origin);
            None
        },
        true,
    );
}

#[test]
fn line_16_an_uploads_first_byte_reaches_the_origin_at_once() {
    for bed in everybody() {
        for (framing, first, later) in [
            ("Content-Length: 10", "f", "irst-later"),
            (
                "Transfer-Encoding: chunked",
                "1\r\nf\r\n",
                "9\r\nirst-late\r\n0\r\n\r\n",
            ),
        ] {
            let mut client = bed.ask(post_with(&format!("{framing}\r\n"), first));
            let mut origin = bed.origin.accept();
            origin.head();
            assert_eq!(
                String::from_utf8_lossy(&origin.exactly(first.len())),
                first,
                "{}",
                bed.who
            );
            client.send(&later[..later.len() - usize::from(framing.ends_with("10"))]);
            origin.wait_for("irst-late");
            origin.send(LAST);
            assert_eq!(client.answer().status(), 200, "{}", bed.who);
        }
    }
}
