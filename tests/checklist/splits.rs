//! Line 15: messages are read the same no matter where their bytes are split.

use std::thread;
use std::time::Duration;

use super::bed::{Bed, GET, forwarding, get_with, post_with};
use crate::support::{Gateway, Message, Origin, Raw};

/// Long enough for what was sent to be read on its own.
const PAUSE: Duration = Duration::from_millis(1);

/// Three requests, and how the origin reads each.
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

/// An origin that answers with what it has seen: the request line, a field, and the body.
fn telling() -> Origin {
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
fn line_15_pipelined_requests_that_pause_at_any_byte_are_the_same() {
    let origin = telling();
    let gateway = Gateway::start(&forwarding(&[origin.address], ""));
    let (requests, wanted) = three();
    let requests = requests.as_bytes();
    for at in 0..=requests.len() {
        let mut client = Raw::connect(gateway.address());
        client.send(&requests[..at]);
        thread::sleep(PAUSE);
        client.send(&requests[at..]);
        for wanted in &wanted {
            let told = client.answer();
            assert_eq!(
                String::from_utf8_lossy(&told.body),
                *wanted,
                "split at {at}: {:?}",
                String::from_utf8_lossy(&requests[..at])
            );
        }
    }
}

#[test]
fn line_15_the_same_connection_goes_on_however_its_requests_are_torn() {
    let origin = telling();
    let gateway = Gateway::start(&forwarding(&[origin.address], ""));
    let (requests, wanted) = three();
    let many = requests.repeat(20).into_bytes();
    for size in [1, 2, 3, 7, 50, 137, 4096] {
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
                for wanted in &wanted {
                    let told = client.answer();
                    let body = String::from_utf8_lossy(&told.body);
                    assert_eq!(body, *wanted, "round {nth}, pieces of {size}");
                }
            }
        });
    }
}

/// Responses, and what must arrive of each: the statuses of the interim ones, the body, the trailers.
const ANSWERS: [(&str, &[u16], &str, usize); 4] = [
    (
        "HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello",
        &[],
        "hello",
        0,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n2;a\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        &[],
        "hello",
        0,
    ),
    (
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 0\r\n\r\n",
        &[103],
        "",
        0,
    ),
    (
        "HTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-B: 2\r\n\r\n",
        &[],
        "hello",
        2,
    ),
];

fn check_answer(interim: &[Message], told: &Message, nth: usize, case: &str) {
    let (_, statuses, body, trailers) = ANSWERS[nth];
    let come: Vec<u16> = interim.iter().map(Message::status).collect();
    assert_eq!(come, statuses, "{case}");
    assert_eq!(String::from_utf8_lossy(&told.body), body, "{case}");
    assert_eq!(told.trailers.len(), trailers, "{case}");
    assert_eq!(told.field("x-a"), Some("1"), "{case}");
}

#[test]
fn line_15_answers_that_pause_at_any_byte_are_the_same() {
    let bed = Bed::drip("", "");
    let request = get_with("Connection: TE\r\nTE: trailers\r\n");
    let mut client = bed.ask(GET);
    let mut origin = bed.origin.accept();
    origin.head();
    origin.send(ANSWERS[0].0);
    check_answer(&[], &client.answer(), 0, "at once");
    for (nth, (answer, ..)) in ANSWERS.into_iter().enumerate() {
        for at in 0..=answer.len() {
            client.send(&request);
            origin.head();
            origin.send(&answer[..at]);
            thread::sleep(PAUSE);
            origin.send(&answer[at..]);
            let (interim, told) = client.answers();
            let case = format!("split at {at}: {:?}", &answer[..at]);
            check_answer(&interim, &told, nth, &case);
        }
    }
}
