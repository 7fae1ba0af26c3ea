//! Tests of an origin with several servers: the choice of a server, and failing servers.

use std::net::SocketAddr;
use std::thread;

use crate::support::process::Process;
use crate::support::scripted::Hold;
use crate::support::{self, Client, Gateway, MS, Origin, all_pass, free_address, now, urls};

fn several(servers: &[SocketAddr], more: &str) -> String {
    support::servers(&urls(servers), more)
}

/// Starts an origin that answers no request until it is released.
fn held() -> (Origin, impl FnOnce()) {
    let hold = Hold::default();
    let of_origin = hold.clone();
    let origin = Origin::answering(move |exchange| {
        of_origin.wait();
        exchange.reply(b"ok")
    });
    (origin, move || hold.open())
}

#[test]
fn the_server_with_the_least_in_flight_is_asked() {
    let ((first, open_first), (second, open_second)) = (held(), held());
    let gateway = Gateway::start(&several(&[first.address, second.address], ""));
    let mut clients: Vec<Client> = (1..=6)
        .map(|sent| {
            let client = gateway.ask("/");
            // One after the other, so that each choice sees the earlier ones.
            first.wait_for(usize::div_ceil(sent, 2));
            second.wait_for(sent / 2);
            client
        })
        .collect();
    open_first();
    open_second();
    all_pass(&mut clients);
}

#[test]
fn a_server_that_cannot_be_reached_costs_no_client_an_answer() {
    let origin = Origin::start();
    let dead = free_address();
    let gateway = Gateway::start(&several(&[dead, origin.address], "max_fails = 3\n"));
    gateway.check_each(20, "/", 200);
    assert_eq!(origin.arrivals().len(), 20);
    let dead = format!("http://{dead}");
    let metrics = gateway.metrics();
    let labels = [("server", &*dead), ("outcome", "unreachable")];
    // Equally idle, the first is preferred until it is out.
    assert_eq!(metrics.count("drip_origin_requests_total", &labels), 3);
    let healthy = metrics.value("drip_origin_healthy", &[("server", &dead)]);
    assert_eq!(healthy, Some(0.0));
}

#[test]
fn where_all_are_out_the_answer_is_503_until_one_is_asked_again() {
    let ((first, _open_first), (second, _open_second)) = (held(), held());
    let more = "max_fails = 1\nfail_timeout = \"1s\"\nresponse_timeout = \"50ms\"\n";
    let gateway = Gateway::start(&several(&[first.address, second.address], more));
    assert_eq!(gateway.fetch("/").status, 504);
    assert_eq!(gateway.fetch("/").status, 504);
    let answer = gateway.fetch("/");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.field("retry-after"), Some("1"));
    thread::sleep(1000 * MS);
    assert_eq!(gateway.fetch("/").status, 504);
    assert_eq!(first.arrivals().len() + second.arrivals().len(), 3);
}

#[test]
fn no_more_than_max_in_flight_are_at_the_origin_at_once_and_the_rest_wait_for_a_slot() {
    let (origin, open) = held();
    let gateway = Gateway::start(&several(&[origin.address], "max_in_flight = 2\n"));
    let mut clients = [(); 5].map(|()| gateway.ask("/"));
    origin.wait_for(2);
    gateway.wait_at_gate(3);
    assert_eq!(origin.arrivals().len(), 2);
    open();
    all_pass(&mut clients);
}

#[test]
fn a_permit_is_held_until_the_last_byte_of_the_answer() {
    let hold = Hold::default();
    let of_origin = hold.clone();
    let origin = Origin::answering(move |exchange| {
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha")?;
        of_origin.wait();
        exchange.send(b"lf")
    });
    let gateway = Gateway::start(&several(&[origin.address], "max_in_flight = 1\n"));
    let mut first = gateway.ask("/");
    assert_eq!(first.head().length(), Some(4));
    let mut second = gateway.ask("/");
    gateway.wait_at_gate(1);
    assert_eq!(origin.arrivals().len(), 1);
    hold.open();
    assert_eq!(second.answer().text(), "half");
}

#[test]
fn the_origin_is_called_by_the_name_that_the_file_says() {
    let origin = Origin::answering(|exchange| {
        let host = exchange.field("host").unwrap_or_default().to_owned();
        exchange.reply(host.as_bytes())
    });
    let own = origin.address.to_string();
    for (rule, expected) in [
        ("preserve", "asked.example"),
        ("origin", &own),
        ("app.internal", "app.internal"),
    ] {
        let gateway = Gateway::start(&several(&[origin.address], &format!("host = \"{rule}\"\n")));
        let mut client = gateway.connect();
        client.send(b"GET / HTTP/1.1\r\nHost: asked.example\r\n\r\n");
        assert_eq!(client.answer().text(), expected, "host = {rule}");
    }
}

/// Returns the memory of a gateway with this many servers, each after two responses.
fn memory_with(servers: usize, origin: &Origin) -> u64 {
    let port = origin.address.port();
    let url = |nth| format!("http://127.1.{}.{}:{port}", nth / 200, nth % 200 + 1);
    let urls: Vec<_> = (0..servers).map(url).collect();
    let file = support::servers(&urls, "keep_alive = 0");
    let gateway = Gateway::start(&format!("workers = 1\n{file}"));
    let mut client = gateway.connect();
    for _ in 0..2 * servers {
        assert_eq!(client.fetch("/").status, 200);
    }
    Process::of(gateway.id()).memory()
}

/// A server that has answered takes a few kilobytes: a name may have hundreds of addresses.
#[test]
fn a_server_that_has_answered_takes_a_few_kilobytes() {
    let origin = Origin::at("0.0.0.0:0", |exchange| exchange.reply(b"ok"));
    let (few, many) = (memory_with(50, &origin), memory_with(850, &origin));
    let each = many.saturating_sub(few) / 800;
    assert!(each < 15_000, "{each} bytes for each server");
}

#[test]
fn an_answer_that_is_late_for_a_route_alone_takes_no_server_out() {
    let origins = [(); 2].map(|()| {
        Origin::answering(|exchange| {
            if exchange.target() == "/search" {
                thread::sleep(500 * MS);
            }
            exchange.reply(b"ok")
        })
    });
    let addresses = origins.each_ref().map(|it| it.address);
    let file = several(&addresses, "max_fails = 1\nfail_timeout = \"1h\"\n");
    let gateway = Gateway::start(&(file + &timed("/search", "100ms")));
    gateway.check_each(6, "/search", 504);
    gateway.check_each(4, "/quick", 200);
    assert!(origins.iter().all(|it| !it.moments("/quick").is_empty()));
}

/// Returns a route with its own `response_timeout`.
fn timed(path: &str, timeout: &str) -> String {
    format!("[[routes]]\npath = \"{path}\"\norigin = \"app\"\nresponse_timeout = \"{timeout}\"\n")
}

#[test]
fn a_route_has_a_response_timeout_of_its_own() {
    let origin = Origin::answering(|exchange| {
        if exchange.target() == "/report" {
            thread::sleep(800 * MS);
            return exchange.reply(b"ok");
        }
        loop {
            thread::park();
        }
    });
    let file = several(&[origin.address], "response_timeout = \"500ms\"\n");
    let routes = timed("/report", "10s") + &timed("/search", "100ms");
    let gateway = Gateway::start(&(file + &routes));
    for (target, status, times) in [
        ("/report", 200, 800..3000),
        ("/search", 504, 100..450),
        ("/", 504, 500..3000),
    ] {
        let began = now();
        assert_eq!(gateway.fetch(target).status, status, "{target}");
        let took = began.elapsed();
        assert!(times.contains(&took.as_millis()), "{target}: {took:?}");
    }
}
