//! Checklist line 16: early responses, and uploads that arrive early.

use std::thread;

use super::bed::{LAST, Testbed, everybody, haproxy_and_drip, nginx_and_drip, noise, post_with};
const EARLY: &str =
    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbig\n";

/// A client uploads 10 MB to an origin that reads only the head and answers at once.
///
/// The upload has a length or is in chunks. The origin then `stays` or breaks the connection. The
/// client reads after its upload (`reads_last`) or meanwhile.
fn early_answer(bed: &Testbed, stays: bool, reads_last: bool) {
    const PIECE: usize = 64 * 1024;
    const SIZE: usize = 160 * PIECE;
    for chunked in [false, true] {
        let (framing, before) = if chunked {
            (
                "Transfer-Encoding: chunked".to_owned(),
                format!("{PIECE:x}\r\n"),
            )
        } else {
            (format!("Content-Length: {SIZE}"), String::new())
        };
        let mut client = bed.ask(post_with(&format!("{framing}\r\n"), ""));
        let mut sender = client.sender();
        let mut origin = bed.origin.accept();
        origin.head();
        let sending = thread::spawn(move || {
            let after: &[u8] = if chunked { b"\r\n" } else { b"" };
            let piece = [before.as_bytes(), &noise(PIECE), after].concat();
            // The gateway may have closed. The test checks what the client has received then.
            (0..SIZE / PIECE).try_for_each(|_| std::io::Write::write_all(&mut sender, &piece))
        });
        origin.send(EARLY);
        let _held = stays.then_some(origin);
        if reads_last {
            let _how = sending.join().expect("no panic");
        }
        let received = client.answer();
        assert_eq!((received.status(), &*received.body), (413, &b"big\n"[..]));
    }
}

#[test]
fn line_16_an_early_413_reaches_a_client_that_still_uploads() {
    for bed in everybody() {
        early_answer(&bed, true, false);
    }
    // nginx takes the origin's reset for its response if it is writing when the reset arrives.
    for bed in haproxy_and_drip() {
        early_answer(&bed, false, false);
    }
}

#[test]
fn line_16_an_early_413_is_not_lost_by_a_reset_before_the_client_reads_it() {
    // haproxy resets the connection.
    for bed in nginx_and_drip() {
        early_answer(&bed, true, true);
    }
    early_answer(&Testbed::drip("", ""), false, true);
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
            assert_eq!(String::from_utf8_lossy(&origin.exactly(first.len())), first);
            client.send(&later[..later.len() - usize::from(framing.ends_with("10"))]);
            origin.wait_for("irst-late");
            origin.send(LAST);
            assert_eq!(client.answer().status(), 200);
        }
    }
}
