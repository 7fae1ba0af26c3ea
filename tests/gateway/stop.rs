//! Tests of a stop: no new connection, every request answered.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{
    Answer, Client, Gateway, MS, Origin, all_pass, check_pace, eventually, now, one_zone,
    side_by_side, statuses,
};

/// Starts a gateway where one request has passed and `waiting` others wait.
fn queued(rate: &str, waiting: usize, server: &str) -> (Origin, Gateway, Vec<Client>) {
    let origin = Origin::start();
    let file = one_zone(&origin, rate, &format!("burst = {waiting}"));
    let gateway = Gateway::start(&format!("{server}\n{file}"));
    let clients = (0..=waiting).map(|_| gateway.ask("/?key=a")).collect();
    let all = i64::try_from(waiting).expect("few");
    eventually("all have joined", || {
        let left = origin.arrivals().len();
        left > 0 && gateway.zone("drip_zone_queue_depth") + i64::try_from(left).expect("few") > all
    });
    (origin, gateway, clients)
}

fn wait_until_refused(gateway: &Gateway) {
    eventually("new connections are refused", || {
        TcpStream::connect(gateway.address()).is_err()
    });
}

#[test]
fn a_full_queue_drains_at_its_pace_after_sigterm_and_sigint_and_new_connections_are_refused() {
    for signal in [Signal::TERM, Signal::INT] {
        let (origin, mut gateway, mut clients) = queued("5r/s", 8, "");
        gateway.signal(signal);
        wait_until_refused(&gateway);
        assert_eq!(statuses(&mut clients), [200; 9]);
        assert_eq!(gateway.wait(Duration::from_secs(10)).code(), Some(0));
        let moments = origin.moments("key=a");
        assert_eq!(moments.len(), 9);
        check_pace(&moments, 200 * MS).expect("at their pace to the end");
    }
}

#[test]
fn a_worker_without_connections_of_its_own_still_drains_its_keys() {
    // With many more workers than clients, some client's key is on a worker without a connection.
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/s", "burst = 1");
    let mut gateway = Gateway::start(&format!("workers = 16\n{file}"));
    let target = |nth: usize| format!("/?key={nth}");
    let mut clients = [0, 1, 2, 3].map(|nth| gateway.ask(&target(nth)));
    all_pass(&mut clients);
    for (nth, client) in clients.iter_mut().enumerate() {
        client.get(&target(nth));
    }
    gateway.wait_for_depth(4);
    gateway.signal(Signal::TERM);
    assert_eq!(statuses(&mut clients), [200; 4]);
    assert_eq!(gateway.wait(Duration::from_secs(3)).code(), Some(0));
}

#[test]
fn after_shutdown_timeout_those_who_still_wait_get_503() {
    let (origin, mut gateway, mut clients) = queued("1r/m", 4, "shutdown_timeout = \"500ms\"");
    let began = now();
    gateway.signal(Signal::TERM);
    let answers: Vec<_> = clients.iter_mut().map(Client::answer).collect();
    let took = began.elapsed();
    assert!((450 * MS..1500 * MS).contains(&took), "{took:?}");
    let served = answers.iter().filter(|answer| answer.status == 200);
    assert_eq!(served.count(), 1);
    let sent_away = |it: &&Answer| it.status == 503 && it.number("retry-after") >= 1;
    assert_eq!(answers.iter().filter(sent_away).count(), 4);
    assert_eq!(gateway.wait(Duration::from_secs(3)).code(), Some(0));
    assert_eq!(origin.arrivals().len(), 1);
}

#[test]
fn the_admin_port_answers_to_the_end_and_readyz_says_503() {
    let (_origin, mut gateway, mut clients) = queued("2r/s", 4, "");
    let status = |path| gateway.admin(path).map(|answer| answer.status);
    assert_eq!(status("/readyz"), Some(200));
    gateway.signal(Signal::TERM);
    eventually("it is not ready any more", || {
        status("/readyz") == Some(503)
    });
    assert_eq!(status("/healthz"), Some(200));
    let depth = gateway.zone("drip_zone_queue_depth");
    assert!(depth >= 1, "while requests still wait");
    assert_eq!(status("/metrics"), Some(200));
    all_pass(&mut clients);
    assert_eq!(gateway.wait(Duration::from_secs(3)).code(), Some(0));
}

#[test]
fn a_second_sigterm_ends_at_once() {
    let (_origin, mut gateway, _clients) = queued("1r/m", 4, "");
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("stopping");
    gateway.signal(Signal::TERM);
    gateway.wait(Duration::from_secs(2));
}

#[test]
fn for_stop_delay_new_connections_are_served_while_readyz_says_503() {
    let (_origin, mut gateway, mut clients) = queued("20r/s", 2, "stop_delay = \"2s\"");
    let mut idle = gateway.connect();
    let began = now();
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("stop_delay=2s");
    let mut served = 0;
    while began.elapsed() < Duration::from_secs(1) {
        let status = gateway.admin("/readyz").map(|answer| answer.status);
        assert_eq!(status, Some(503));
        let mut client = gateway.ask(&format!("/?key=new{served}"));
        assert_eq!(client.answer().status, 200);
        served += 1;
    }
    assert!(served >= 5, "{served}");
    assert_eq!(idle.fetch("/?key=idle").status, 200);
    all_pass(&mut clients);
    wait_until_refused(&gateway);
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert_eq!(gateway.wait(Duration::from_secs(3)).code(), Some(0));
}

#[test]
fn a_second_sigterm_ends_stop_delay_and_the_queue_drains() {
    let (_origin, mut gateway, mut clients) = queued("5r/s", 4, "stop_delay = \"1h\"");
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("stop_delay=3600s");
    gateway.signal(Signal::TERM);
    wait_until_refused(&gateway);
    all_pass(&mut clients);
    assert_eq!(gateway.wait(Duration::from_secs(3)).code(), Some(0));
}

#[test]
fn a_stop_logs_no_error_and_refuses_new_connections_on_every_socket() {
    // A race between threads does not fail each time.
    side_by_side(0..10, |nth| {
        let release = Arc::new(Barrier::new(2));
        let released = Arc::clone(&release);
        let origin = Origin::answering(move |exchange| {
            if exchange.target() == "/held" {
                released.wait();
            }
            exchange.reply(b"ok")
        });
        let file = one_zone(&origin, "2r/s", "burst = 2");
        let (mut gateway, socket) = Gateway::start_with_unix_socket(&file);
        let _unused = gateway.connect();
        let _unused_unix = UnixStream::connect(&socket).expect("a connection");
        let mut idle = gateway.ask("/");
        assert_eq!(idle.answer().status, 200);
        // In every other round the stop has to wait for a client.
        let held = (nth % 2 == 0).then(|| {
            let client = gateway.ask("/held");
            origin.wait_for(2);
            client
        });
        gateway.signal(Signal::TERM);
        wait_until_refused(&gateway);
        eventually("new connections are refused at the unix socket", || {
            UnixStream::connect(&socket).is_err()
        });
        if let Some(mut client) = held {
            let healthz = gateway.admin("/healthz").map(|answer| answer.status);
            assert_eq!(healthz, Some(200), "it has not ended yet");
            release.wait();
            assert_eq!(client.answer().status, 200);
        }
        assert_eq!(gateway.wait(Duration::from_secs(3)).code(), Some(0));
        assert_eq!(idle.rest(), b"");
        let log = gateway.whole_log();
        let (_, stop) = log.split_once("stopping").expect("it says that it stops");
        let is_bad = |line: &&str| line.contains(" ERROR ") || line.contains(" WARN ");
        let bad = stop.lines().filter(is_bad).collect::<Vec<_>>();
        assert!(bad.is_empty(), "round {nth}: {bad:#?}");
    });
}

#[test]
fn a_connection_taken_just_before_a_stop_is_served() {
    let origin = Origin::start();
    for _ in 0..5 {
        let file = one_zone(&origin, "1000r/s", "burst = 2");
        let (mut gateway, socket) = Gateway::start_with_unix_socket(&file);
        let mut tcp = gateway.connect();
        let mut unix = UnixStream::connect(&socket).expect("a connection");
        tcp.get("/");
        unix.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it reads");
        gateway.signal(Signal::TERM);
        assert_eq!(tcp.answer().status, 200);
        let mut answer = String::new();
        unix.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
        assert_eq!(gateway.wait(Duration::from_secs(3)).code(), Some(0));
    }
}

#[test]
fn the_access_log_has_each_request_once_the_gateway_has_ended() {
    let origin = Origin::start();
    for _ in 0..5 {
        let zone = one_zone(&origin, "1000r/s", "burst = 100");
        let mut gateway = Gateway::start(&format!("{zone}[log]\naccess = \"access.log\"\n"));
        let mut clients: Vec<_> = (0..50).map(|_| gateway.ask("/?key=a")).collect();
        gateway.signal(Signal::TERM);
        all_pass(&mut clients);
        assert_eq!(gateway.wait(Duration::from_secs(3)).code(), Some(0));
        let log = fs::read_to_string(gateway.site.folder().join("access.log"));
        assert_eq!(log.expect("a log").lines().count(), 50);
    }
}
