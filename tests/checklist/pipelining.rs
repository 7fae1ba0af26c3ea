//! Line 15: many requests on one connection.

use std::thread;

use super::bed::{Bed, everybody, noise, post_with};
use crate::support::Raw;

/// Serves each of these requests on a connection of its own, and checks the answers, which come in
/// order.
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
