//! Tests of examples of limits at the origin: a fragile backend, a proxy, open sockets, streams.

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

#[test]
fn an_llm_server_answers_two_at_once_and_its_users_take_turns() {
    // It reads the bodies.
    let origin = Origin::echo();
    Example::start("llm-server", &origin, &[]).works();

    let holding = HoldingOrigin::of("/held");
    let example = Example::start("llm-server", &holding.origin, &[]);
    let address = example.gateway.address();
    let ask = |user: &str, n: usize| {
        let mut client = Client::connect(address);
        client.send(format!(
            "POST /v1/held-{user}-{n} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {user}\r\n\
             Content-Length: 0\r\n\r\n"
        ));
        client
    };
    let held = || {
        let mut targets = holding.targets();
        targets.retain(|target| target.contains("/held"));
        targets
    };
    let depth = || {
        let metrics = example.gateway.metrics();
        metrics.count("drip_origin_queue_depth", &[("origin", "llm")])
    };
    let mut clients = vec![ask("alice", 0), ask("alice", 1)];
    eventually("two are at the server", || held().len() == 2);
    for n in 2..6 {
        clients.push(ask("alice", n));
        eventually("it waits", || depth() == i64::try_from(n).expect("few") - 1);
    }
    clients.push(ask("bob", 0));
    eventually("five wait", || depth() == 5);
    // The list of models does not wait, and other paths are not there.
    assert_eq!(curl(address, "/v1/models", &[]), 200);
    assert_eq!(curl(address, "/api/pull", &["-d", "{}"]), 404);
    assert_eq!(held().len(), 2);

    holding.release("/v1/held-alice-0");
    holding.release("/v1/held-alice-1");
    eventually("two more are there", || held().len() == 4);
    let all = held();
    assert!(all.contains(&"/v1/held-bob-0".to_owned()), "{all:?}");
    holding.release("/v1/held-bob-0");
    for n in 2..6 {
        holding.release(&format!("/v1/held-alice-{n}"));
    }
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
}

/// Sends a request, and begins a stream as its response. Returns the client's end and the server's.
fn stream(example: &Example, origin: &RawOrigin, request: &str) -> (Raw, Raw) {
    let mut client = Raw::connect(example.gateway.address());
    client.send(request);
    let mut server = origin.accept();
    server.request();
    server.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    assert_eq!(client.head().status(), 200);
    (client, server)
}

#[test]
fn tokens_of_an_llm_server_pass_one_by_one_and_a_client_that_disconnects_ends_its_request() {
    let (pages, origin) = (Origin::start(), RawOrigin::start());
    let here = format!("http://{}", origin.address);
    let llm = [("http://127.0.0.1:9000", here.as_str())];
    let example = Example::start("llm-server", &pages, &llm);
    let prompt = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
    let (mut client, mut server) = stream(&example, &origin, prompt);
    for token in ["first", "later"] {
        server.send(format!("5\r\n{token}\r\n"));
        client.wait_for(token);
    }
    client.close();
    server.end();
    let in_flight = || {
        let metrics = example.gateway.metrics();
        metrics.count("drip_origin_in_flight", &[("origin", "llm")])
    };
    eventually("its permit is free", || in_flight() == 0);
}

#[test]
fn streams_of_agents_take_no_permit_and_a_user_has_ten() {
    let pages = Origin::echo();
    let example = Example::start("mcp", &pages, &[]);
    example.works();
    drop(example);

    let origin = RawOrigin::start();
    let here = format!("http://{}", origin.address);
    let tools = [("http://127.0.0.1:9000", here.as_str())];
    let example = Example::start("mcp", &pages, &tools);
    let listen = "GET /mcp HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer alice\r\n\r\n";
    let open: Vec<_> = (0..10).map(|_| stream(&example, &origin, listen)).collect();
    let alice = ["-H", "Authorization: Bearer alice"];
    assert_eq!(curl(example.gateway.address(), "/mcp", &alice), 429);
    let metrics = example.gateway.metrics();
    let streams = metrics.count("drip_zone_in_flight", &[("zone", "streams")]);
    assert_eq!(streams, 10);

    // All permits are free for calls, whose responses are streams, too.
    let call = "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
    let calls: Vec<_> = (0..8).map(|_| stream(&example, &origin, call)).collect();
    let metrics = example.gateway.metrics();
    let tools = metrics.count("drip_origin_in_flight", &[("origin", "tools")]);
    assert_eq!(tools, 8);
    drop((open, calls));
}

#[test]
fn a_flash_crowd_shares_an_answer_but_for_those_who_are_logged_in() {
    let origin = Origin::start();
    // The commands may take longer than five seconds on a busy machine.
    let kept = [("keep = \"5s\"", "keep = \"10m\"")];
    Example::start("flash-crowd", &origin, &kept).works();
    let targets: Vec<String> = origin.arrivals().into_iter().map(|it| it.target).collect();
    assert_eq!(
        targets,
        ["/news", "/news"],
        "one for all, one for a session"
    );
}
