//! An origin of several servers: which server gets a request, and which does not while it fails.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::support::process::Process;
use crate::support::{Client, Gateway, Origin, eventually, fetch, free_address, now};

fn several(servers: &[SocketAddr], more: &str) -> String {
    let servers: Vec<String> = servers
        .iter()
        .map(|to| format!("\"http://{to}\""))
        .collect();
    let servers = servers.join(", ");
    format!(
        "[origins.app]\nservers = [{servers}]\n{more}\n[[routes]]\npath = \"/\"\norigin = \"app\"\n"
    )
}

/// An origin that answers no request until it is released.
fn held() -> (Origin, impl FnOnce()) {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let held = Arc::clone(&gate);
    let origin = Origin::answering(move |exchange| {
        let (open, opened) = &*held;
        let _open = opened
            .wait_while(open.lock().unwrap(), |open| !*open)
            .unwrap();
        exchange.reply(b"ok")
    });
    let open = move || {
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
    };
    (origin, open)
}

#[test]
fn the_server_with_the_least_in_flight_is_asked() {
    let ((first, open_first), (second, open_second)) = (held(), held());
    let gateway = Gateway::start(&several(&[first.address, second.address], ""));
    let clients: Vec<Client> = (1..=6)
        .map(|sent| {
            let client = Client::ask(gateway.address(), "/");
            // One after the other, so that each choice sees the earlier ones.
            first.wait_for(usize::div_ceil(sent, 2));
            second.wait_for(sent / 2);
            client
        })
        .collect();
    open_first();
    open_second();
    for mut client in clients {
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn servers_with_equally_few_requests_take_turns() {
    let origins = [Origin::start(), Origin::start(), Origin::start()];
    let gateway = Gateway::start(&several(&origins.each_ref().map(|it| it.address), ""));
    for _ in 0..30 {
        assert_eq!(fetch(gateway.address(), "/").status, 200);
    }
    assert_eq!(origins.map(|it| it.arrivals().len()), [10, 10, 10]);
}

#[test]
fn a_busy_server_waits_for_its_turn_until_the_others_are_as_busy() {
    let (busy, open) = held();
    let idle = [Origin::start(), Origin::start()];
    let servers = [busy.address, idle[0].address, idle[1].address];
    let gateway = Gateway::start(&several(&servers, ""));
    let mut client = Client::ask(gateway.address(), "/");
    busy.wait_for(1);
    for _ in 0..20 {
        assert_eq!(fetch(gateway.address(), "/").status, 200);
    }
    assert_eq!(idle.map(|it| it.arrivals().len()), [10, 10]);
    assert_eq!(busy.arrivals().len(), 1);
    open();
    assert_eq!(client.answer().status, 200);
}

#[test]
fn the_metric_is_0_while_the_only_server_is_dead() {
    let address = free_address();
    let labels = format!("http://{address}");
    let labels = [("server", labels.as_str())];
    let more = "max_fails = 3\nfail_timeout = \"1h\"";
    let gateway = Gateway::start(&several(&[address], more));
    let healthy = || gateway.metrics().value("drip_origin_healthy", &labels);
    for is in [1.0, 1.0, 0.0, 0.0] {
        // It is asked all the same.
        assert_eq!(fetch(gateway.address(), "/").status, 502);
        assert_eq!(healthy(), Some(is));
    }
    let _back = Origin::at(&address.to_string(), |exchange| exchange.reply(b"ok"));
    assert_eq!(fetch(gateway.address(), "/").status, 200);
    assert_eq!(healthy(), Some(1.0));

    let more = "max_fails = 1\nfail_timeout = \"1s\"";
    let gateway = Gateway::start(&several(&[free_address()], more));
    let began = now();
    assert_eq!(fetch(gateway.address(), "/").status, 502);
    let healthy = || {
        gateway
            .metrics()
            .value("drip_origin_healthy", &[("origin", "app")])
    };
    let is_dead = healthy() == Some(0.0);
    assert!(is_dead || began.elapsed() > Duration::from_secs(1));
    eventually("what it does now is unknown", || healthy() == Some(1.0));
}

#[test]
fn a_server_that_cannot_be_reached_costs_no_client_an_answer() {
    let origin = Origin::start();
    let dead = free_address();
    let gateway = Gateway::start(&several(&[dead, origin.address], "max_fails = 3\n"));
    for _ in 0..20 {
        assert_eq!(fetch(gateway.address(), "/").status, 200);
    }
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
fn the_metric_says_that_a_server_is_in_again_once_fail_timeout_is_over_or_it_is_alone() {
    let origin = Origin::start();
    let dead = free_address();
    let fields = |fail_timeout| format!("max_fails = 1\nfail_timeout = \"{fail_timeout}\"\n");
    let server = format!("http://{dead}");
    let healthy = |gateway: &Gateway| {
        let labels = [("server", &*server)];
        gateway.metrics().value("drip_origin_healthy", &labels)
    };
    let gateway = Gateway::start(&several(&[dead, origin.address], &fields("2s")));
    let began = now();
    assert_eq!(fetch(gateway.address(), "/").status, 200);
    let is_out = healthy(&gateway) == Some(0.0);
    assert!(
        is_out || began.elapsed() > Duration::from_secs(2),
        "it is out"
    );
    // Without any other request.
    eventually("it is asked again", || healthy(&gateway) == Some(1.0));
    assert_eq!(origin.arrivals().len(), 1);

    let gateway = Gateway::start(&several(&[dead, origin.address], &fields("1h")));
    assert_eq!(fetch(gateway.address(), "/").status, 200);
    assert_eq!(healthy(&gateway), Some(0.0));
    // A single server is asked whatever it did.
    gateway.site.write(&several(&[dead], &fields("1h")));
    eventually("it is asked again", || healthy(&gateway) == Some(1.0));
}

#[test]
fn a_post_goes_to_another_server_where_nothing_of_it_was_sent() {
    let origin = Origin::answering(|exchange| {
        let body = exchange.body()?;
        exchange.reply(&body)
    });
    let gateway = Gateway::start(&several(&[free_address(), origin.address], ""));
    let mut client = Client::connect(gateway.address());
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    let answer = client.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    assert_eq!(origin.arrivals().len(), 1);
}

#[test]
fn where_all_are_out_the_answer_is_503_until_one_is_asked_again() {
    let ((first, _open_first), (second, _open_second)) = (held(), held());
    let more = "max_fails = 1\nfail_timeout = \"1s\"\nresponse_timeout = \"50ms\"\n";
    let gateway = Gateway::start(&several(&[first.address, second.address], more));
    assert_eq!(fetch(gateway.address(), "/").status, 504);
    assert_eq!(fetch(gateway.address(), "/").status, 504);
    let answer = fetch(gateway.address(), "/");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.field("retry-after"), Some("1"));
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(fetch(gateway.address(), "/").status, 504);
    assert_eq!(first.arrivals().len() + second.arrivals().len(), 3);
}

#[test]
fn no_more_than_max_in_flight_are_at_the_origin_at_once_and_the_rest_wait_for_a_slot() {
    let (origin, open) = held();
    let gateway = Gateway::start(&several(&[origin.address], "max_in_flight = 2\n"));
    let clients: Vec<Client> = (0..5)
        .map(|_| Client::ask(gateway.address(), "/"))
        .collect();
    origin.wait_for(2);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(origin.arrivals().len(), 2);
    open();
    for mut client in clients {
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn a_place_is_taken_until_the_last_byte_of_the_answer() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let half = Arc::clone(&gate);
    let origin = Origin::answering(move |exchange| {
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha")?;
        let (open, opened) = &*half;
        let _open = opened
            .wait_while(open.lock().unwrap(), |open| !*open)
            .unwrap();
        exchange.send(b"lf")
    });
    let gateway = Gateway::start(&several(&[origin.address], "max_in_flight = 1\n"));
    let mut first = Client::ask(gateway.address(), "/");
    assert_eq!(first.head().length(), Some(4));
    let mut second = Client::ask(gateway.address(), "/");
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(origin.arrivals().len(), 1);
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
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
        let mut client = Client::connect(gateway.address());
        client.send(b"GET / HTTP/1.1\r\nHost: asked.example\r\n\r\n");
        assert_eq!(client.answer().text(), expected, "host = {rule}");
    }
}

/// Memory of a gateway with so many servers, each of which has answered twice.
fn memory_with(servers: usize, origin: &Origin) -> u64 {
    let port = origin.address.port();
    let url = |nth| format!("\"http://127.1.{}.{}:{port}\"", nth / 200, nth % 200 + 1);
    let urls: Vec<_> = (0..servers).map(url).collect();
    let gateway = Gateway::start(&format!(
        "workers = 1\n[origins.app]\nservers = [{}]\nkeep_alive = 0\n[[routes]]\npath = \"/\"\norigin = \"app\"\n",
        urls.join(", ")
    ));
    let mut client = Client::connect(gateway.address());
    for _ in 0..2 * servers {
        client.get("/");
        assert_eq!(client.answer().status, 200);
    }
    Process::of(gateway.id()).memory()
}

/// The addresses of a name may be hundreds of servers.
#[test]
fn a_server_that_has_answered_takes_a_few_kilobytes() {
    let origin = Origin::at("0.0.0.0:0", |exchange| exchange.reply(b"ok"));
    let (few, many) = (memory_with(50, &origin), memory_with(850, &origin));
    let each = many.saturating_sub(few) / 800;
    assert!(each < 15_000, "{each} bytes for each server");
}
