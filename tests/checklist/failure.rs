//! Checklist lines 19 and 20: origins that fail, and clients that disconnect.

use std::thread;

use rustix::process::Signal;

use super::bed::{
    GET, LAST, MS, OK, Testbed, ask, everybody, forwarding, haproxy_and_drip, post_with, with_drip,
};
use crate::peers;
use crate::support::{DeafOrigin, Gateway, Origin, Raw, SOON, free_address, now};

#[test]
fn line_19_an_origin_that_refuses_is_a_502_whose_body_is_not_sent_to_head() {
    // haproxy answers 503, and closes after a response to HEAD.
    let nginx = peers::nginx(free_address(), "");
    let drip = Gateway::start(&forwarding(&[free_address()], ""));
    for (_, to) in with_drip([&nginx], &drip) {
        let answer = ask(to, &post_with("Content-Length: 5\r\n", "hello"));
        assert_eq!(answer.status(), 502);
        let mut client = Raw::connect(to);
        for method in ["HEAD", "HEAD", "GET"] {
            client.send(format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n"));
            let received = client.answer_to(method);
            assert_eq!(received.status(), 502, "{method}");
            assert_eq!(received.body.is_empty(), method == "HEAD", "{received:?}");
        }
    }
}

#[test]
fn line_19_an_origin_that_resets_or_closes_is_a_502() {
    for bed in everybody() {
        for end in [drop, Raw::reset] {
            for part in ["", "HTTP/1.1 200 OK\r\nContent-"] {
                for request in [GET.to_owned(), post_with("Content-Length: 5\r\n", "hello")] {
                    let mut client = bed.ask(&request);
                    let mut origin = bed.origin.accept();
                    origin.request();
                    origin.send(part);
                    end(origin);
                    // The request may be sent again where that is allowed.
                    if let Some(again) = bed.origin.accept_within(50 * MS) {
                        end(again);
                    }
                    assert_eq!(client.answer().status(), 502, "after {part:?}");
                }
            }
        }
        bed.check_unseen();
    }
}

#[test]
fn line_19_nonsense_is_a_502() {
    // nginx takes what is not HTTP for HTTP/0.9. haproxy is as strict as drip.
    for bed in haproxy_and_drip() {
        for nonsense in [
            "what?\r\n\r\n",
            "HTTP/1.1 abc OK\r\n\r\n",
            "\x16\x03\x01\x02\0\x01\0\r\n\r\n",
            "SSH-2.0-OpenSSH_9.2\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX A: 1\r\nContent-Length: 0\r\n\r\n",
        ] {
            let mut passed = bed.pass(GET, nonsense);
            drop(passed.origin);
            let received = passed.client.try_answer_to("GET", SOON);
            let status = received.map(|received| received.status());
            assert_eq!(status.ok(), Some(502), "{nonsense:?}");
        }
    }
}

#[test]
fn line_19_a_status_that_is_none_is_a_502() {
    // nginx and haproxy pass some of them on.
    let bed = Testbed::drip("", "");
    for status in ["20", "2000", "-20", "099", "20x"] {
        let answer = format!("HTTP/1.1 {status} OK\r\nContent-Length: 0\r\n\r\n");
        let mut passed = bed.pass(GET, answer);
        drop(passed.origin);
        assert_eq!(passed.client.answer().status(), 502, "{status}");
    }
}

#[test]
fn line_19_an_answers_head_past_its_limit_is_a_502() {
    for bed in everybody() {
        let mut client = bed.ask(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        // The peer may close before the last byte.
        let line = format!("X-Long: {}\r\n", "x".repeat(4000));
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", line.repeat(25));
        let _all_sent = origin.try_send(head);
        assert_eq!(client.answer().status(), 502);
    }
}

#[test]
fn line_19_a_full_origin_is_a_503_that_says_when_to_come_again() {
    let bed = Testbed::drip("", "max_in_flight = 1\nqueue_timeout = \"200ms\"");
    let mut first = bed.ask(GET);
    let mut origin = bed.origin.accept();
    origin.head();
    let refused = bed.ask(GET).answer();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.field("retry-after"), Some("1"));
    origin.send(OK);
    assert_eq!(first.answer().body, b"ok");
}

#[test]
fn line_19_an_unhealthy_origin_is_a_503_that_says_when_to_come_again() {
    let servers = [free_address(), free_address()];
    let gateway = Gateway::start(&forwarding(&servers, "max_fails = 1"));
    let status = ask(gateway.address(), GET).status();
    assert_eq!(status, 502, "both servers are tried");
    let refused = ask(gateway.address(), GET);
    assert_eq!(refused.status(), 503);
    let seconds: u32 = refused
        .field("retry-after")
        .expect("a moment")
        .parse()
        .expect("seconds");
    assert!((1..=10).contains(&seconds), "{seconds}");
}

#[test]
fn line_19_an_origin_too_slow_to_connect_is_a_504() {
    // haproxy answers 503.
    let deaf = DeafOrigin::start();
    let nginx = peers::nginx(deaf.address, "proxy_connect_timeout 300ms;");
    let drip = Gateway::start(&forwarding(&[deaf.address], "connect_timeout = \"300ms\""));
    for (_, to) in with_drip([&nginx], &drip) {
        let began = now();
        assert_eq!(ask(to, GET).status(), 504);
        let took = began.elapsed();
        // A clock of whole ticks may have started one tick earlier.
        assert!((299..2000).contains(&took.as_millis()), "{took:?}");
    }
}

#[test]
fn line_19_an_origin_too_slow_to_answer_is_a_504() {
    let origin = Origin::answering(|_| {
        loop {
            thread::park();
        }
    });
    let nginx = peers::nginx(origin.address, "proxy_read_timeout 300ms;");
    let haproxy = peers::haproxy(origin.address, "    timeout server 300ms");
    let drip = Gateway::start(&forwarding(
        &[origin.address],
        "response_timeout = \"300ms\"",
    ));
    for (_, to) in with_drip([&nginx, &haproxy], &drip) {
        for request in [GET.to_owned(), post_with("Content-Length: 5\r\n", "hello")] {
            let began = now();
            assert_eq!(ask(to, &request).status(), 504);
            let took = began.elapsed();
            assert!((300..10_000).contains(&took.as_millis()), "{took:?}");
        }
    }
}

#[test]
fn line_19_an_answer_that_is_there_when_time_is_up_is_no_504() {
    let mut bed = Testbed::drip("", "response_timeout = \"300ms\"");
    for _ in 0..3 {
        let mut client = bed.ask(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        // As if the machine stood still for a while.
        bed.gateway().signal(Signal::STOP);
        origin.send(LAST);
        thread::sleep(400 * MS);
        bed.gateway().signal(Signal::CONT);
        assert_eq!(client.answer().status(), 200);
    }
}

#[test]
fn line_19_a_head_that_never_ends_is_a_504() {
    // nginx and haproxy measure from the last byte.
    let bed = Testbed::drip("", "response_timeout = \"300ms\"");
    let began = now();
    let mut client = bed.ask(GET);
    let mut origin = bed.origin.accept();
    origin.head();
    origin.send("HTTP/1.1 200 OK\r\n");
    while origin.try_send("X-A: 1\r\n").is_ok() && began.elapsed() < 3 * SOON / 5 {
        thread::sleep(20 * MS);
    }
    assert_eq!(client.answer().status(), 504);
    let took = began.elapsed();
    assert!((300..10_000).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn line_20_a_client_that_leaves_before_its_answer_cancels_the_request_at_the_origin() {
    for bed in everybody() {
        for leave in [drop, Raw::reset] {
            for request in [GET.to_owned(), post_with("Content-Length: 5\r\n", "hello")] {
                let client = bed.ask(&request);
                let mut origin = bed.origin.accept();
                origin.request();
                leave(client);
                assert_eq!(origin.end().0, b"");
            }
        }
    }
}

#[test]
fn line_20_a_client_that_leaves_amid_its_answer_or_its_body_cancels_the_request_at_the_origin() {
    for bed in everybody() {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\npart";
        let mut passed = bed.pass(GET, answer);
        passed.client.wait_for("part");
        drop(passed.client);
        passed.origin.end();
        let client = bed.ask(post_with("Content-Length: 100\r\n", "part"));
        let mut origin = bed.origin.accept();
        origin.wait_for("part");
        drop(client);
        origin.end();
    }
}
