//! Lines 19 to 21: origins that fail, clients that leave, and what is sent again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::bed::{Bed, GET, LAST, MS, OK, everybody, get_with, haproxy_and_drip, post_with};
use crate::haproxy::Haproxy;
use crate::nginx::Nginx;
use crate::support::{
    DeafOrigin, Exchange, Gateway, Origin, Raw, SOON, eventually, free_address, now,
};

fn forwarding(servers: &[std::net::SocketAddr], more: &str) -> String {
    let servers: Vec<_> = servers
        .iter()
        .map(|at| format!("\"http://{at}\""))
        .collect();
    let servers = servers.join(", ");
    format!(
        "workers = 1\n[origins.app]\nservers = [{servers}]\n{more}\n[[routes]]\npath = \"/\"\norigin = \"app\"\n"
    )
}

fn ask(to: std::net::SocketAddr, request: &str) -> crate::support::Message {
    let mut client = Raw::connect(to);
    client.send(request);
    client.answer()
}

#[test]
fn line_19_an_origin_that_refuses_is_a_502() {
    // haproxy says 503.
    let nginx = Nginx::before(free_address(), "", &[("/", "")]);
    let drip = Gateway::start(&forwarding(&[free_address()], ""));
    for to in [nginx.address, drip.address()] {
        for request in [GET.to_owned(), post_with("Content-Length: 5\r\n", "hello")] {
            assert_eq!(ask(to, &request).status(), 502);
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
                    // It may be asked again where that is allowed.
                    if let Some(again) = bed.origin.accept_within(50 * MS) {
                        end(again);
                    }
                    assert_eq!(client.answer().status(), 502, "{}: after {part:?}", bed.who);
                }
            }
        }
        bed.check_unseen();
    }
}

#[test]
fn line_19_nonsense_is_a_502() {
    // nginx takes what is no HTTP for an answer of HTTP/0.9, and haproxy is as strict as this.
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
            let told = passed.client.try_answer_to("GET", SOON);
            let status = told.map(|told| told.status());
            assert_eq!(status.ok(), Some(502), "{}: {nonsense:?}", bed.who);
        }
    }
}

#[test]
fn line_19_a_status_that_is_none_is_a_502() {
    // nginx and haproxy pass some of them on.
    let bed = Bed::drip("", "");
    for status in ["20", "2000", "-20", "099", "20x"] {
        let mut passed = bed.pass(
            GET,
            format!("HTTP/1.1 {status} OK\r\nContent-Length: 0\r\n\r\n"),
        );
        drop(passed.origin);
        assert_eq!(passed.client.answer().status(), 502, "{status}");
    }
}

#[test]
fn line_19_an_answer_of_two_lengths_is_a_502() {
    // nginx takes the first.
    for bed in haproxy_and_drip() {
        for lines in [
            "Content-Length: 2\r\nContent-Length: 3\r\n",
            "Content-Length: 2x\r\n",
        ] {
            let mut passed = bed.pass(GET, format!("HTTP/1.1 200 OK\r\n{lines}\r\nok!"));
            assert_eq!(
                passed.client.answer().status(),
                502,
                "{}: {lines:?}",
                bed.who
            );
        }
    }
}

#[test]
fn line_19_an_answers_head_past_its_limit_is_a_502() {
    for bed in everybody() {
        let mut client = bed.ask(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        // Whoever has had enough may close before the last byte.
        let line = format!("X-Long: {}\r\n", "x".repeat(4000));
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", line.repeat(25));
        let _all_sent = origin.try_send(head);
        assert_eq!(client.answer().status(), 502, "{}", bed.who);
    }
}

#[test]
fn line_19_a_full_origin_is_a_503_that_says_when_to_come_again() {
    let bed = Bed::drip("", "max_in_flight = 1\nqueue_timeout = \"200ms\"");
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
    assert_eq!(ask(gateway.address(), GET).status(), 502, "both are asked");
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
    // haproxy says 503.
    let deaf = DeafOrigin::start();
    let nginx = Nginx::before(deaf.address, "proxy_connect_timeout 300ms;", &[("/", "")]);
    let drip = Gateway::start(&forwarding(&[deaf.address], "connect_timeout = \"300ms\""));
    for to in [nginx.address, drip.address()] {
        let began = now();
        assert_eq!(ask(to, GET).status(), 504);
        let took = began.elapsed();
        assert!((300..2000).contains(&took.as_millis()), "{took:?}");
    }
}

#[test]
fn line_19_an_origin_too_slow_to_answer_is_a_504() {
    let origin = Origin::answering(|_| {
        loop {
            thread::park();
        }
    });
    let nginx = Nginx::before(origin.address, "proxy_read_timeout 300ms;", &[("/", "")]);
    let haproxy = Haproxy::before(origin.address, "    timeout server 300ms");
    let drip = Gateway::start(&forwarding(
        &[origin.address],
        "response_timeout = \"300ms\"",
    ));
    for to in [nginx.address, haproxy.address, drip.address()] {
        for request in [GET.to_owned(), post_with("Content-Length: 5\r\n", "hello")] {
            let began = now();
            assert_eq!(ask(to, &request).status(), 504);
            let took = began.elapsed();
            assert!((300..2000).contains(&took.as_millis()), "{took:?}");
        }
    }
}

#[test]
fn line_19_a_head_that_never_ends_is_a_504() {
    // nginx and haproxy count from the last byte.
    let bed = Bed::drip("", "response_timeout = \"300ms\"");
    let mut client = bed.ask(GET);
    let mut origin = bed.origin.accept();
    let began = now();
    origin.head();
    origin.send("HTTP/1.1 200 OK\r\n");
    while origin.try_send("X-A: 1\r\n").is_ok() && began.elapsed() < 3 * SOON / 5 {
        thread::sleep(20 * MS);
    }
    assert_eq!(client.answer().status(), 504);
    let took = began.elapsed();
    assert!((300..2000).contains(&took.as_millis()), "{took:?}");
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
                assert_eq!(origin.end().0, b"", "{}", bed.who);
            }
        }
    }
}

#[test]
fn line_20_a_client_that_leaves_amid_its_answer_or_its_body_cancels_the_request_at_the_origin() {
    for bed in everybody() {
        let mut passed = bed.pass(
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\npart",
        );
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

#[test]
fn line_20_a_client_that_leaves_gives_back_its_place_in_the_queue() {
    let zone = "[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/h\"";
    let mut bed = Bed::limited_drip("", "", zone, "limits = [{ zone = \"z\", burst = 2 }]");
    bed.seen(GET);
    let waiting: Vec<_> = (0..2).map(|_| bed.ask(GET)).collect();
    bed.gateway().wait_for_depth(2);
    assert_eq!(bed.ask(GET).answer().status(), 429, "the queue is full");
    drop(waiting);
    bed.gateway().wait_for_depth(0);
    let _waiting = bed.ask(GET);
    bed.gateway().wait_for_depth(1);
    assert!(
        bed.origin.accept_within(20 * MS).is_none(),
        "none of them passed"
    );
}

#[test]
fn line_20_a_client_that_leaves_gives_back_its_place_at_the_origin() {
    let mut bed = Bed::drip("", "max_in_flight = 1");
    let first = bed.ask(GET);
    let mut origin = bed.origin.accept();
    origin.head();
    let second = bed.ask(get_with("X-Second: 1\r\n"));
    assert!(bed.origin.accept_within(50 * MS).is_none(), "it waits");
    drop(second);
    let mut third = bed.ask(get_with("X-Third: 1\r\n"));
    drop(first);
    origin.end();
    let mut origin = bed.origin.accept();
    assert!(
        origin.head().has("x-third"),
        "nobody asks for those who left"
    );
    origin.send(LAST);
    assert_eq!(third.answer().body, b"ok");
    let gateway = bed.gateway();
    eventually("nobody is at the origin", || {
        gateway.metrics().count("drip_origin_in_flight", &[]) == 0
    });
}

/// Answers the first request of each connection, and closes without a word where the second comes.
fn breaks_its_second_request() -> (Origin, Arc<Mutex<HashMap<String, usize>>>) {
    let seen = Arc::<Mutex<HashMap<String, usize>>>::default();
    let counted = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange| {
        let target = exchange.target().to_owned();
        *counted.lock().expect("no panic").entry(target).or_default() += 1;
        exchange.body()?;
        if exchange.nth > 1 {
            Exchange::close()
        } else {
            exchange.reply(b"ok")
        }
    });
    (origin, seen)
}

fn request(method: &str, target: &str, body: &str) -> String {
    let length = body.len();
    let framing = if length == 0 {
        String::new()
    } else {
        format!("Content-Length: {length}\r\n")
    };
    format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{framing}\r\n{body}")
}

#[test]
fn line_21_what_is_idempotent_and_has_no_body_is_sent_once_more() {
    // haproxy does so only where it is told to.
    let (origin, seen) = breaks_its_second_request();
    let nginx = Nginx::before(origin.address, "", &[("/", "")]);
    let drip = Gateway::start(&forwarding(&[origin.address], ""));
    for to in [nginx.address, drip.address()] {
        let mut client = Raw::connect(to);
        for method in ["GET", "HEAD", "GET", "DELETE", "OPTIONS", "GET"] {
            client.send(request(method, "/", ""));
            assert_eq!(client.answer_to(method).status(), 200, "{method}");
        }
    }
    assert!(
        seen.lock().expect("no panic")["/"] > 12,
        "some were sent again"
    );
}

#[test]
fn line_21_a_post_or_a_body_is_never_sent_twice() {
    let (origin, seen) = breaks_its_second_request();
    let nginx = Nginx::before(origin.address, "", &[("/", "")]);
    let drip = Gateway::start(&forwarding(&[origin.address], ""));
    // haproxy closes the client's connection, so that the client may ask again.
    for (who, to) in [("nginx", nginx.address), ("drip", drip.address())] {
        let mut client = Raw::connect(to);
        for (nth, (method, body)) in [
            ("POST", "hello"),
            ("POST", ""),
            ("PUT", "hello"),
            ("PATCH", "x"),
            ("LOCK", ""),
        ]
        .into_iter()
        .enumerate()
        {
            if who == "nginx" && method == "PUT" {
                // It sends idempotent requests again with their bodies, which it keeps.
                continue;
            }
            client.send(request("GET", "/", ""));
            let warm = client.answer().status();
            assert_eq!(warm, 200, "{who}");
            let target = format!("/{who}/{nth}");
            client.send(request(method, &target, body));
            let status = client.answer().status();
            assert!(status == 502 || status == 200, "{who}: {method}: {status}");
            let times = seen.lock().expect("no panic").get(&target).copied();
            assert_eq!(times, Some(1), "{who}: {method} {body:?}");
        }
    }
}

#[test]
fn line_21_no_request_is_sent_more_than_twice() {
    let origin = Origin::answering(|_| Exchange::close());
    let nginx = Nginx::before(origin.address, "", &[("/", "")]);
    let haproxy = Haproxy::before(origin.address, "");
    let drip = Gateway::start(&forwarding(&[origin.address], ""));
    for (who, to) in [
        ("nginx", nginx.address),
        ("haproxy", haproxy.address),
        ("drip", drip.address()),
    ] {
        for (method, body, most) in [
            ("GET", "", 2),
            ("DELETE", "", 2),
            ("POST", "", 1),
            ("POST", "hello", 1),
        ] {
            let before = origin.arrivals().len();
            assert_eq!(ask(to, &request(method, "/", body)).status(), 502, "{who}");
            let times = origin.arrivals().len() - before;
            assert!(times <= most, "{who}: {method} came {times} times");
        }
    }
}

#[test]
fn line_21_an_origin_that_closes_after_each_answer_costs_no_client_a_5xx() {
    let seen = Arc::<Mutex<HashMap<String, usize>>>::default();
    let counted = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange| {
        let target = exchange.target().to_owned();
        *counted.lock().expect("no panic").entry(target).or_default() += 1;
        exchange.body()?;
        exchange.reply(b"ok")?;
        Exchange::close()
    });
    let nginx = Nginx::before(origin.address, "", &[("/", "")]);
    let drip = Gateway::start(&forwarding(&[origin.address], ""));
    // haproxy does not send again what an idle connection took with it.
    for (who, to) in [("nginx", nginx.address), ("drip", drip.address())] {
        let mut client = Raw::connect(to);
        for nth in 0..200 {
            client.send(GET);
            assert_eq!(client.answer().status(), 200, "{who}: request {nth}");
        }
        for nth in 0..50 {
            let target = format!("/{who}/{nth}");
            client.send(request("POST", &target, "hello"));
            let status = client.answer().status();
            let times = seen
                .lock()
                .expect("no panic")
                .get(&target)
                .copied()
                .unwrap_or(0);
            // Whether the origin has had it nobody knows where it closed at the same moment.
            assert!(
                times == 1 && status == 200 || times == 0 && status == 502,
                "{who}: {nth}: {status}, {times} times"
            );
        }
    }
}

#[test]
fn line_21_a_connection_that_the_origin_closed_while_it_was_idle_costs_no_post_a_5xx() {
    for bed in everybody() {
        let mut client = bed.client();
        for nth in 0..20 {
            client.send(request("POST", "/", &"x".repeat(nth + 1)));
            let mut origin = bed.origin.accept();
            assert_eq!(origin.request().body.len(), nth + 1, "{}", bed.who);
            origin.send(OK);
            assert_eq!(client.answer().status(), 200, "{}: {nth}", bed.who);
            drop(origin);
            // The proxy has this long to notice.
            thread::sleep(20 * MS);
        }
        assert_eq!(
            bed.seen(post_with("Content-Length: 9\r\n", "last post"))
                .body
                .len(),
            9
        );
    }
}
