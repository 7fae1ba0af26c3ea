//! Checklist line 15: pipelined requests on one connection.

use std::thread;
use std::time::Duration;

use super::bed::{Testbed, everybody, forwarding, noise, post_with};
use crate::support::{Gateway, Origin, Raw};

/// Serves each request on its own origin connection, and checks the order of the responses.
fn check_pipeline(bed: &Testbed, mut client: Raw, requests: &[(&str, &str, Vec<u8>)]) {
    for (method, target, body) in requests {
        let mut origin = bed.origin.accept();
        let seen = origin.request();
        assert_eq!(seen.line, format!("{method} {target} HTTP/1.1"));
        let head = format!(
            "HTTP/1.1 200 OK\r\nX-Of: {target}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut answer = head.into_bytes();
        if *method != "HEAD" {
            answer.extend_from_slice(body);
        }
        thread::spawn(move || origin.send(answer));
        let received = client.answer_to(method);
        assert_eq!(received.field("x-of"), Some(*target));
        assert_eq!(received.length(), Some(body.len()));
        let expected: &[u8] = if *method == "HEAD" { b"" } else { body };
        assert!(received.body == expected, "the body of {target}");
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

/// Returns three requests, and each as the origin receives it.
fn three() -> (String, [String; 3]) {
    let requests = post_with("Content-Length: 5\r\nX-A:\t\r\n", "hello")
        + &post_with(
            "Transfer-Encoding: chunked\r\n",
            "2;a=\"b\"\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        )
        + "GET /3?x HTTP/1.1\r\nHost: test\r\nX-A: c \r\n\r\n";
    let seen = ["POST / [] hello", "POST / - hello", "GET /3?x [c] "];
    (requests, seen.map(ToOwned::to_owned))
}

/// Starts an origin that answers with the request line, a field, and the body.
fn echo_origin() -> Origin {
    Origin::answering(|exchange| {
        let line = exchange.head.first_line.replace(" HTTP/1.1", "");
        let field = exchange
            .field("x-a")
            .map_or_else(|| "-".to_owned(), |value| format!("[{value}]"));
        let body = String::from_utf8_lossy(&exchange.body()?).into_owned();
        exchange.reply(format!("{line} {field} {body}").as_bytes())
    })
}

#[test]
fn line_15_the_same_connection_goes_on_however_its_requests_are_torn() {
    let origin = echo_origin();
    let gateway = Gateway::start(&forwarding(&[origin.address], ""));
    let (requests, expected) = three();
    let many = requests.repeat(20).into_bytes();
    for size in [1, 3, 7, 137, 4096] {
        let mut client = Raw::connect(gateway.address());
        let mut sender = client.sender();
        thread::scope(|scope| {
            let many = &many;
            scope.spawn(move || {
                for piece in many.chunks(size) {
                    std::io::Write::write_all(&mut sender, piece).expect("it is read");
                    if size < 50 {
                        thread::sleep(Duration::from_micros(50));
                    }
                }
            });
            for nth in 0..20 {
                for expected in &expected {
                    let received = client.answer();
                    let body = String::from_utf8_lossy(&received.body);
                    assert_eq!(body, *expected, "round {nth}, pieces of {size}");
                }
            }
        });
    }
}
