//! Tests of the choice among servers: by key, after an outage, and after failed responses.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{
    Exchange, Gateway, MS, Origin, assert_contains, eventually, free_address, now, servers, urls,
};

fn file(addresses: &[SocketAddr], more: &str) -> String {
    servers(&urls(addresses), more)
}

fn status(exchange: &mut Exchange, status: u16) -> std::io::Result<()> {
    exchange.send(format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n"))
}

fn answering(code: u16) -> Origin {
    Origin::answering(move |exchange| status(exchange, code))
}

/// Starts a server that answers with its name.
fn named(name: usize) -> Origin {
    Origin::answering(move |exchange| exchange.reply(name.to_string().as_bytes()))
}

/// Returns the server of each session. Each session sends a few requests.
fn servers_of(gateway: &Gateway, sessions: usize) -> HashMap<usize, String> {
    let mut client = gateway.connect();
    let mut of_session = HashMap::new();
    for _ in 0..3 {
        for session in 0..sessions {
            let request =
                format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: session=s{session}\r\n\r\n");
            client.send(&request);
            let answer = client.answer();
            assert_eq!(answer.status, 200);
            let before = of_session.insert(session, answer.text());
            assert!(before.is_none_or(|before| before == answer.text()));
        }
    }
    of_session
}

const BY_SESSION: &str = "balance = \"hash:$cookie_session\"";

#[test]
fn the_requests_of_a_key_go_to_one_server_and_only_those_of_a_server_that_leaves_move() {
    let servers = [named(0), named(1), named(2)];
    let addresses = servers.each_ref().map(|it| it.address);
    let gateway = Gateway::start(&file(&addresses, BY_SESSION));
    let before = servers_of(&gateway, 60);
    for server in ["0", "1", "2"] {
        assert!(before.values().any(|it| it == server), "{before:?}");
    }
    // Another gateway chooses the same, whatever the order of the servers.
    let turned = [addresses[2], addresses[0], addresses[1]];
    let other = Gateway::start(&file(&turned, BY_SESSION));
    assert_eq!(servers_of(&other, 60), before);

    gateway.site.write(&file(&addresses[..2], BY_SESSION));
    gateway.wait_for_line("origins.app.servers - ");
    let after = servers_of(&gateway, 60);
    for (session, server) in &before {
        assert!(server == "2" || after[session] == *server, "{session}");
    }
    // The server returns with its earlier keys.
    gateway.site.write(&file(&addresses, BY_SESSION));
    gateway.wait_for_line("origins.app.servers + ");
    assert_eq!(servers_of(&gateway, 60), before);
}

#[test]
fn keys_of_a_server_that_cannot_be_reached_go_to_the_next_one() {
    let servers = [named(0), named(1)];
    let addresses = [servers[0].address, free_address(), servers[1].address];
    let more = format!("{BY_SESSION}\nmax_fails = 1\nfail_timeout = \"1h\"");
    let gateway = Gateway::start(&file(&addresses, &more));
    // The first request of a dead server's session detects it, and goes to the same server as the
    // next.
    let of_session = servers_of(&gateway, 40);
    let fewer = Gateway::start(&file(&[addresses[0], addresses[2]], BY_SESSION));
    assert_eq!(servers_of(&fewer, 40), of_session);
}

#[test]
fn requests_without_a_key_go_to_the_server_with_the_fewest() {
    let servers = [Origin::start(), Origin::start(), Origin::start()];
    let addresses = servers.each_ref().map(|it| it.address);
    let gateway = Gateway::start(&file(&addresses, BY_SESSION));
    gateway.check_each(30, "/", 200);
    assert_eq!(servers.map(|it| it.arrivals().len()), [10, 10, 10]);
}

#[test]
fn answers_that_count_take_their_server_out_after_max_fails() {
    let (bad, good) = (answering(503), Origin::start());
    let more = "fail_on = [\"503\"]\nmax_fails = 3\nfail_timeout = \"1h\"";
    let gateway = Gateway::start(&file(&[bad.address, good.address], more));
    let statuses: Vec<u16> = (0..40).map(|_| gateway.fetch("/").status).collect();
    let failed = statuses.iter().filter(|status| **status == 503).count();
    assert_eq!((failed, bad.arrivals().len()), (3, 3));
    let line = gateway.wait_for_line("the server is out of use for fail_timeout");
    assert_contains!(line, "it answered 503");
    let bad = format!("http://{}", bad.address);
    let healthy = gateway.value("drip_origin_healthy", &[("server", &bad)]);
    assert_eq!(healthy, Some(0.0));
}

#[test]
fn answers_count_only_if_the_file_says_so_and_only_in_a_row() {
    let turn = AtomicUsize::new(0);
    let mixed = Origin::answering(move |exchange| {
        let nth = turn.fetch_add(1, Ordering::SeqCst);
        status(exchange, if nth % 3 == 2 { 200 } else { 503 })
    });
    let (bad, good) = (answering(500), Origin::start());
    let more = "fail_on = [\"503\"]\nmax_fails = 3\nfail_timeout = \"1h\"";
    let servers = [mixed.address, bad.address, good.address];
    let gateway = Gateway::start(&file(&servers, more));
    for _ in 0..60 {
        gateway.fetch("/");
    }
    let arrived = [&mixed, &bad, &good].map(|it| it.arrivals().len());
    assert_eq!(arrived, [20, 20, 20]);
}

#[test]
fn answers_never_take_out_more_than_half_of_the_servers() {
    for (count, out) in [(2, 1), (3, 1), (4, 2), (5, 2)] {
        let servers: Vec<Origin> = (0..count).map(|_| answering(503)).collect();
        let addresses: Vec<SocketAddr> = servers.iter().map(|it| it.address).collect();
        let more = "fail_on = [\"5xx\"]\nmax_fails = 1\nfail_timeout = \"1h\"";
        let gateway = Gateway::start(&file(&addresses, more));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut client = gateway.connect();
                    for _ in 0..20 {
                        let answer = client.fetch("/");
                        // A response of the server itself: drip's own have a body.
                        assert_eq!((answer.status, answer.text()), (503, String::new()));
                    }
                });
            }
        });
        let metrics = gateway.metrics();
        let is_out = |server: &&String| {
            metrics.value("drip_origin_healthy", &[("server", server)]) == Some(0.0)
        };
        let found = urls(&addresses).iter().filter(is_out).count();
        assert_eq!(found, out, "of {count}");
    }
}

#[test]
fn slow_heads_count_too() {
    let slow = Origin::answering(|exchange| {
        thread::sleep(1500 * MS);
        exchange.reply(b"ok")
    });
    let quick = Origin::start();
    let more = "fail_on = [\"slow:1s\"]\nmax_fails = 2\nfail_timeout = \"1h\"";
    let gateway = Gateway::start(&file(&[slow.address, quick.address], more));
    gateway.check_each(20, "/", 200);
    assert_eq!(slow.arrivals().len(), 2);
}

#[test]
fn a_server_that_comes_back_under_load_gets_few_at_first_and_nothing_is_rejected() {
    const CLIENTS: usize = 12;
    let (steady, address) = (
        Origin::answering(|exchange: &mut Exchange| {
            thread::sleep(20 * MS);
            exchange.reply(b"ok")
        }),
        free_address(),
    );
    let server = |address| format!("{{ url = \"http://{address}\", max_in_flight = 8 }}");
    let gateway = Gateway::start(&format!(
        "[origins.app]\nservers = [{}, {}]\nslow_start = \"8s\"\nmax_fails = 1\n\
         fail_timeout = \"200ms\"\nqueue_timeout = \"1m\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\n",
        server(steady.address),
        server(address)
    ));
    // Number of requests at the server at once, with the instant.
    let peaks = Arc::<Mutex<Vec<(Instant, usize)>>>::default();
    let stop = AtomicBool::new(false);
    let back = thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = gateway.connect();
                while !stop.load(Ordering::SeqCst) {
                    assert_eq!(client.fetch("/").status, 200);
                }
            });
        }
        steady.wait_for(100);
        let (here, seen) = (AtomicUsize::new(0), Arc::clone(&peaks));
        let back = Origin::at(&address.to_string(), move |exchange| {
            let count = here.fetch_add(1, Ordering::SeqCst) + 1;
            seen.lock().expect("no panic").push((now(), count));
            thread::sleep(20 * MS);
            here.fetch_sub(1, Ordering::SeqCst);
            exchange.reply(b"ok")
        });
        let highest = || peaks.lock().expect("no panic").iter().map(|it| it.1).max();
        // Twelve clients over two servers with equal weights.
        eventually("it gets its share", || highest() >= Some(5));
        stop.store(true, Ordering::SeqCst);
        back
    });
    assert!(back.arrivals().len() > 20);
    let peaks = peaks.lock().expect("no panic");
    let second = peaks[0].0 + Duration::from_secs(1);
    let early = peaks.iter().filter(|it| it.0 < second).map(|it| it.1).max();
    // In the first second of eight one at a time; more if the machine stood still for a while
    // before.
    assert!(early <= Some(3), "{early:?}");
}
