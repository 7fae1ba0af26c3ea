//! Tests of requests that fail by themselves: they take no server out for others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::frames::reset;
use crate::support::{
    Answer, Exchange, FrameOrigin, Gateway, MS, Origin, eventually, fetch_with, servers, urls,
};

const ENHANCE_YOUR_CALM: u32 = 11;

/// Returns a file with these servers, on which any failure counts.
fn file(urls: &[String], fail_timeout: &str) -> String {
    let fields = format!("max_fails = 1\nfail_timeout = \"{fail_timeout}\"");
    format!("workers = 1\n{}", servers(urls, &fields))
}

/// Starts an origin that fails two targets: no response, or an invalid one.
fn picky() -> Origin {
    Origin::answering(|exchange| match exchange.target() {
        "/ends" => Exchange::close(),
        "/invalid" => exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n"),
        _ => exchange.reply(b"ok"),
    })
}

fn healthy(gateway: &Gateway, servers: &[String]) -> Vec<Option<f64>> {
    let metrics = gateway.metrics();
    let of = |server: &String| metrics.value("drip_origin_healthy", &[("server", server)]);
    servers.iter().map(of).collect()
}

/// Returns the number of requests for a target at each origin.
fn asked(origins: &[Origin; 2], target: &str) -> [usize; 2] {
    let of = |origin: &Origin| {
        let arrivals = origin.arrivals().into_iter();
        arrivals.filter(|it| it.target == target).count()
    };
    origins.each_ref().map(of)
}

fn check_all_in(gateway: &Gateway, servers: &[String]) {
    assert_eq!(healthy(gateway, servers), [Some(1.0), Some(1.0)]);
    let mut lines = gateway.log_lines().into_iter();
    assert!(!lines.any(|(_, line)| line.contains("out of use")));
}

#[test]
fn a_request_that_ends_its_connection_takes_out_no_server_that_answers_others() {
    for target in ["/ends", "/invalid"] {
        let origins = [picky(), picky()];
        let servers = urls(&origins.each_ref().map(|it| it.address));
        let gateway = Gateway::start(&file(&servers, "1h"));
        gateway.check_each(2, "/", 200);
        for _ in 0..20 {
            for _ in 0..2 {
                let before = asked(&origins, target);
                assert_eq!(gateway.fetch(target).status, 502, "{target}");
                let after = asked(&origins, target);
                // Another server would fail as well.
                let tried = before.iter().zip(&after).filter(|(a, b)| a != b).count();
                assert_eq!(tried, 1, "{target}");
            }
            for _ in 0..2 {
                assert_eq!(gateway.fetch("/").status, 200, "{target}");
            }
        }
        check_all_in(&gateway, &servers);
    }
}

#[test]
fn a_stream_that_alone_is_reset_takes_out_no_server_that_answers_others() {
    let origins = [FrameOrigin::start(), FrameOrigin::start()];
    let servers = origins.each_ref().map(|it| format!("h2c://{}", it.address));
    let gateway = Gateway::start(&file(&servers, "1h"));
    gateway.check_each(2, "/", 200);
    for _ in 0..20 {
        for origin in &origins {
            origin.next(|to, stream| to.send(reset(stream, ENHANCE_YOUR_CALM)));
        }
        gateway.check_each(2, "/many", 502);
        gateway.check_each(2, "/", 200);
    }
    check_all_in(&gateway, &servers);
    // No request was sent twice, and the connections stay open.
    let asked = origins.each_ref().map(FrameOrigin::requests);
    assert_eq!(asked.iter().sum::<usize>(), 2 + 20 * 4);
    assert_eq!(origins.map(|it| it.connections()), [1, 1]);
}

#[test]
fn a_server_that_ends_all_connections_is_taken_out_and_never_the_last_one() {
    let is_broken = Arc::<AtomicBool>::default();
    let of_first = Arc::clone(&is_broken);
    let first = Origin::answering(move |exchange| {
        if of_first.load(Ordering::SeqCst) {
            return Exchange::close();
        }
        exchange.reply(b"ok")
    });
    let second = picky();
    let servers = urls(&[first.address, second.address]);
    let gateway = Gateway::start(&file(&servers, "2s"));
    gateway.check_each(2, "/", 200);
    is_broken.store(true, Ordering::SeqCst);
    eventually("it is taken out", || {
        let _by_either = gateway.fetch("/");
        healthy(&gateway, &servers) == [Some(0.0), Some(1.0)]
    });
    gateway.wait_for_line("out of use");

    // No request was answered before: a failure would take the server out at once.
    let origins = [picky(), picky()];
    let servers = urls(&origins.each_ref().map(|it| it.address));
    let gateway = Gateway::start(&file(&servers, "1h"));
    gateway.check_each(5, "/ends", 502);
    let out = healthy(&gateway, &servers);
    assert_eq!(out.iter().filter(|it| **it == Some(0.0)).count(), 1);
    assert_eq!(gateway.fetch("/").status, 200);
}

/// Starts an origin that answers 502 to one target, and hangs on another.
fn failing() -> Origin {
    Origin::answering(|exchange| match exchange.target() {
        "/fails" => exchange.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"),
        "/hangs" => {
            std::thread::sleep(600 * MS);
            Exchange::close()
        }
        _ => exchange.reply(b"ok"),
    })
}

fn start_failing(origins: &[Origin; 2]) -> (Gateway, Vec<String>) {
    let servers = urls(&origins.each_ref().map(|it| it.address));
    let file = file(&servers, "1h").replace("max_fails = 1", "max_fails = 3");
    let rules = "fail_on = [\"502\"]\nresponse_timeout = \"300ms\"\n[[routes]]";
    let file = file.replace("[[routes]]", rules);
    let file = format!("trusted_proxies = [\"127.0.0.1\"]\n{file}");
    (Gateway::start(&file), servers)
}

fn fetch_as(gateway: &Gateway, client: &str, target: &str) -> Answer {
    let fields = format!("X-Forwarded-For: {client}\r\n");
    fetch_with(gateway.address(), target, &fields)
}

/// Checks that both servers answer another client.
fn answer_other(gateway: &Gateway) {
    for _ in 0..2 {
        assert_eq!(fetch_as(gateway, "10.0.0.2", "/").status, 200);
    }
}

#[test]
fn answers_that_fail_for_one_client_alone_take_out_no_server_that_answers_others() {
    let origins = [failing(), failing()];
    let (gateway, servers) = start_failing(&origins);
    answer_other(&gateway);
    for _ in 0..5 {
        for _ in 0..20 {
            assert_eq!(fetch_as(&gateway, "10.0.0.1", "/fails").status, 502);
        }
        answer_other(&gateway);
    }
    check_all_in(&gateway, &servers);
    // Requests of several clients that fail in a row take a server out at once.
    for nth in 3..15 {
        fetch_as(&gateway, &format!("10.0.0.{nth}"), "/fails");
    }
    let out = healthy(&gateway, &servers);
    assert_eq!(out.iter().filter(|it| **it == Some(0.0)).count(), 1);
}

#[test]
fn requests_of_one_client_that_alone_get_no_answer_in_time_take_out_no_server() {
    let origins = [failing(), failing()];
    let (gateway, servers) = start_failing(&origins);
    for _ in 0..2 {
        answer_other(&gateway);
        let clients = (0..10).map(|_| {
            let mut client = gateway.connect();
            let fields = "Host: a\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n";
            client.send(format!("GET /hangs HTTP/1.1\r\n{fields}"));
            client
        });
        for mut client in clients.collect::<Vec<_>>() {
            assert_eq!(client.answer().status, 504);
        }
    }
    check_all_in(&gateway, &servers);
}
