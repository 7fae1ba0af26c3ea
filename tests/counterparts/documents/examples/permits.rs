//! Tests of examples of limits at the origin: a fragile backend, a proxy, open sockets.

use std::thread;
use std::time::Duration;

use crate::documents::examples::{Example, curl};
use crate::support::{Client, HoldingOrigin, Origin, Raw, RawOrigin, SOON, check_pace, eventually};

const WEBSOCKET: &str = "GET /ws HTTP/1.1\r\nHost: app\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
     Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

#[test]
fn a_fragile_backend_gets_no_more_than_ten_at_once() {
    let holding = HoldingOrigin::of("/held");
    let example = Example::start(
        "fragile-backend",
        &holding.origin,
        // A busy machine is slow between the steps of this test.
        &[
            ("queue_timeout = \"5s\"", "queue_timeout = \"1m\""),
            ("max_wait = \"5s\"", "max_wait = \"1m\""),
        ],
    );
    example.works();
    let address = example.gateway.address();
    let held = |n: usize| format!("/held-{n}-");
    let count = || {
        let targets = holding.targets();
        targets.iter().filter(|it| it.starts_with("/held")).count()
    };
    let mut flood: Vec<Client> = Vec::new();
    for n in 0..10 {
        flood.push(Client::ask(address, &held(n)));
        eventually("it is at the backend", || count() == n + 1);
    }
    let depth = || {
        let metrics = example.gateway.metrics();
        metrics.count("drip_origin_queue_depth", &[("origin", "app")])
    };
    for n in 10..30 {
        flood.push(Client::ask(address, &held(n)));
    }
    eventually("twenty wait", || depth() == 20);
    assert_eq!(curl(address, "/held-30-", &[]), 429);
    assert_eq!(count(), 10);

    for n in 0..10 {
        holding.release(&held(n));
    }
    eventually("ten more are there", || count() == 20);
    for n in 10..30 {
        holding.release(&held(n));
    }
    for client in &mut flood {
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn an_outbound_proxy_keeps_the_quota_and_sends_the_name_of_the_api() {
    let origin = Origin::answering(|exchange| {
        let host = exchange.field("host").unwrap_or_default().to_owned();
        exchange.reply(host.as_bytes())
    });
    let url = format!("http://{}", origin.address);
    let api = [("https://api.example.com", url.as_str())];
    let example = Example::start("outbound-proxy", &origin, &api);
    example.works();
    let address = example.gateway.address();
    let jobs: Vec<_> = (0..8)
        .map(|n| thread::spawn(move || crate::support::fetch(address, &format!("/v1/job-{n}"))))
        .collect();
    for job in jobs {
        let answer = job.join().expect("no panic");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.text(), origin.address.to_string());
    }
    let mut moments = origin.moments("/v1/job");
    moments.sort();
    assert_eq!(moments.len(), 8);
    if let Err(uneven) = check_pace(&moments, Duration::from_millis(200)) {
        panic!("{uneven}");
    }
}

/// Opens a WebSocket through the gateway. Returns the client's end and the application's.
fn websocket(example: &Example, origin: &RawOrigin) -> (Raw, Raw) {
    let mut client = Raw::connect(example.gateway.address());
    client.send(WEBSOCKET);
    let mut server = origin.accept();
    assert_eq!(server.head().field("upgrade"), Some("websocket"));
    server.send(SWITCHED);
    assert_eq!(client.head().status(), 101);
    (client, server)
}

#[test]
fn two_websockets_of_a_client_pass_and_a_third_one_waits_and_is_rejected() {
    let pages = Origin::start();
    let example = Example::start("websockets", &pages, &[]);
    example.works();
    drop(example);

    let origin = RawOrigin::start();
    let here = format!("http://{}", origin.address);
    let app = [("http://127.0.0.1:9000", here.as_str())];
    let example = Example::start("websockets", &pages, &app);
    let (mut client, mut server) = websocket(&example, &origin);
    client.send(b"from the client");
    assert_eq!(server.exactly(15), b"from the client");
    server.send(b"from the server");
    assert_eq!(client.exactly(15), b"from the server");
    let (second, second_server) = websocket(&example, &origin);

    let mut third = Raw::connect(example.gateway.address());
    third.send(WEBSOCKET);
    assert_eq!(third.head_within(2 * SOON).status(), 429);
    let in_flight = || {
        let metrics = example.gateway.metrics();
        metrics.count("drip_zone_in_flight", &[("zone", "sockets")])
    };
    assert_eq!(in_flight(), 2);

    drop((second, second_server));
    eventually("its permit is free", || in_flight() == 1);
    let (mut fourth, mut fourth_server) = websocket(&example, &origin);
    fourth.send(b"x");
    assert_eq!(fourth_server.exactly(1), b"x");
}
