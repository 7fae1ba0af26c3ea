//! Lines 14 to 17: answers before the answer, many requests on one connection, early answers, expectations.

use std::thread;

use crate::bed::{
    Bed, GET, LAST, MB, MS, everybody, haproxy_and_drip, nginx_and_drip, noise, ok_with, post_with,
};
use crate::support::Raw;

#[test]
fn line_14_interim_answers_come_before_the_final_one_and_never_instead_of_it() {
    // nginx takes them for the final answer.
    for bed in haproxy_and_drip() {
        for interim in [
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n",
            "HTTP/1.1 102 Processing\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
        ] {
            let mut client = bed.ask(GET);
            let mut origin = bed.origin.accept();
            for nth in ["first", "second"] {
                origin.head();
                origin.send(interim);
                origin.send(ok_with(&format!("X-Nth: {nth}\r\n")));
                let told = client.answer();
                assert_eq!(told.status(), 200, "{}", bed.who);
                assert_eq!(told.field("x-nth"), Some(nth), "{}: {interim:?}", bed.who);
                client.send(GET);
                if let Some(other) = bed.origin.accept_within(20 * MS) {
                    origin = other;
                }
            }
            origin.head();
            origin.send(LAST);
            assert_eq!(client.answer().body, b"ok", "{}", bed.who);
        }
    }
}

#[test]
fn line_14_a_final_answer_that_follows_an_interim_one_late_is_waited_for() {
    for bed in haproxy_and_drip() {
        let mut client = bed.ask(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        origin.send("HTTP/1.1 103 Early Hints\r\n\r\n");
        thread::sleep(100 * MS);
        origin.send(LAST);
        assert_eq!(client.answer().body, b"ok", "{}", bed.who);
    }
}

/// Serves each of these requests on a connection of its own, and checks the answers, which come in order.
fn check_pipeline(bed: &Bed, mut client: Raw, requests: &[(&str, &str, Vec<u8>)]) {
    for (method, target, body) in requests {
        let mut origin = bed.origin.accept();
        let seen = origin.request();
        assert_eq!(
            seen.line,
            format!("{method} {target} HTTP/1.1"),
            "{}",
            bed.who
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\nX-Of: {target}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut answer = head.into_bytes();
        if *method != "HEAD" {
            answer.extend_from_slice(body);
        }
        thread::spawn(move || origin.send(answer));
        let told = client.answer_to(method);
        assert_eq!(told.field("x-of"), Some(*target), "{}", bed.who);
        assert_eq!(told.length(), Some(body.len()), "{}", bed.who);
        let wanted: &[u8] = if *method == "HEAD" { b"" } else { body };
        assert!(told.body == wanted, "{}: the body of {target}", bed.who);
    }
}

fn heads(requests: &[(&str, &str, Vec<u8>)]) -> String {
    let head = |(method, target, _): &(&str, &str, Vec<u8>)| {
        format!("{method} {target} HTTP/1.1\r\nHost: test\r\n\r\n")
    };
    requests.iter().map(head).collect()
}

#[test]
fn line_15_pipelined_get_head_and_get_are_answered_in_order() {
    for bed in everybody() {
        for length in [5, 100_000] {
            let requests = [
                ("GET", "/1", noise(length)),
                ("HEAD", "/2", noise(length + 1)),
                ("GET", "/3", noise(length + 2)),
            ];
            check_pipeline(&bed, bed.ask(heads(&requests)), &requests);
            check_pipeline(&bed, bed.ask_byte_by_byte(heads(&requests)), &requests);
        }
        let many: Vec<_> = (0..30)
            .map(|nth| (if nth % 3 == 1 { "HEAD" } else { "GET" }, "/x", noise(nth)))
            .collect();
        check_pipeline(&bed, bed.ask(heads(&many)), &many);
    }
}

#[test]
fn line_15_a_request_behind_a_body_is_the_next_one() {
    for bed in everybody() {
        let posts = post_with("Content-Length: 5\r\n", "GET /")
            + &post_with("Transfer-Encoding: chunked\r\n", "4\r\nGET \r\n0\r\n\r\n");
        let client = bed.ask(posts + "GET /3 HTTP/1.1\r\nHost: test\r\n\r\n");
        check_pipeline(
            &bed,
            client,
            &[
                ("POST", "/", noise(3)),
                ("POST", "/", noise(4)),
                ("GET", "/3", noise(5)),
            ],
        );
    }
}

const EARLY: &str =
    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbig\n";

/// A client that uploads 10 MB to an origin that reads the head alone and answers at once, and then does `then`.
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
    // nginx takes the origin's reset for its answer where it is busy writing as that comes.
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

const EXPECTING: &str = "Expect: 100-continue\r\nContent-Length: 5\r\n";

#[test]
fn line_17_an_expected_100_continue_comes_and_then_the_answer() {
    for bed in everybody() {
        let mut client = bed.ask(post_with(EXPECTING, ""));
        // The proxy may tell the client to go on by itself, or ask the origin.
        let origin = bed.origin.accept_within(300 * MS);
        let serve = move |mut origin: Raw| {
            if origin.head().has("expect") {
                origin.send("HTTP/1.1 100 Continue\r\n\r\n");
            }
            assert_eq!(origin.exactly(5), b"hello");
            origin.send(LAST);
        };
        let asked = origin.map(|origin| thread::spawn(move || serve(origin)));
        let first = client.head();
        assert_eq!(first.status(), 100, "{}", bed.who);
        assert!(
            !first.has("content-length") && !first.has("transfer-encoding"),
            "{}",
            bed.who
        );
        client.send("hello");
        match asked {
            Some(asked) => asked.join().expect("the origin has it"),
            None => serve(bed.origin.accept()),
        }
        let told = client.head();
        assert_eq!(told.status(), 200, "{}: one 100 is enough", bed.who);
        assert_eq!(client.exactly(2), b"ok", "{}", bed.who);
        client.send(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        origin.send(LAST);
        assert_eq!(
            client.answer().body,
            b"ok",
            "{}: the connection goes on",
            bed.who
        );
    }
}

#[test]
fn line_17_a_final_status_reaches_a_client_that_waits_for_100() {
    for bed in everybody() {
        let mut passed = bed.pass_head(
            post_with(EXPECTING, ""),
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
        );
        let told = passed.client.answer();
        assert_eq!(
            (told.status(), told.body.as_slice()),
            (403, b"no".as_slice()),
            "{}",
            bed.who
        );
    }
}

#[test]
fn line_17_a_client_that_sends_its_body_without_waiting_is_served() {
    for bed in everybody() {
        let seen = bed.seen_at_last(post_with(EXPECTING, "hello"));
        assert_eq!(seen.body, b"hello", "{}", bed.who);
    }
}

#[test]
fn line_17_a_request_that_its_limits_reject_gets_no_100() {
    let zone = "[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/h\"";
    let bed = Bed::limited_drip("", "", zone, "limits = [{ zone = \"z\" }]");
    bed.seen(GET);
    let mut client = bed.ask(post_with(EXPECTING, ""));
    assert_eq!(client.head().status(), 429, "the first that comes");
    assert!(bed.origin.accept_within(20 * MS).is_none());
}

#[test]
fn line_17_another_expectation_fails() {
    // nginx and haproxy take no notice of it.
    let bed = Bed::drip("", "");
    for expect in [
        "200-ok",
        "100-continue, 200-ok",
        "100-continued",
        "x=\"100-continue\"",
    ] {
        let status = bed.own_status(post_with(
            &format!("Expect: {expect}\r\nContent-Length: 0\r\n"),
            "",
        ));
        assert_eq!(status, 417, "{expect}");
    }
    let twice = "Expect: 100-continue\r\nExpect: 200-ok\r\nContent-Length: 0\r\n";
    assert_eq!(bed.own_status(post_with(twice, "")), 417);
    let seen = bed.seen_at_last(post_with(
        "Expect: 100-Continue\r\nContent-Length: 5\r\n",
        "hello",
    ));
    assert_eq!(seen.body, b"hello", "its case does not matter");
}

#[test]
fn line_17_a_client_of_http_1_0_gets_no_100() {
    // nginx sends it one.
    for bed in haproxy_and_drip() {
        let mut client = bed.ask(format!(
            "POST / HTTP/1.0\r\nHost: test\r\n{EXPECTING}\r\nhello"
        ));
        let mut origin = bed.origin.accept();
        assert_eq!(origin.request().body, b"hello", "{}", bed.who);
        origin.send(LAST);
        assert_eq!(client.head().status(), 200, "{}", bed.who);
    }
}
