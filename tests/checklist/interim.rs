//! Line 14: answers before the answer.

use std::thread;

use crate::bed::{GET, LAST, MS, haproxy_and_drip, ok_with};

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
