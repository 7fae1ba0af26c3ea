//! Tests of health checks: failing servers get no requests until they pass again.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::{
    Exchange, Gateway, Origin, SOON, assert_contains, drip, eventually, free_address, now, servers,
    urls,
};

/// Returns a file whose origin is checked every 50 ms. `more`: further fields of the checks.
fn checked(urls: &[String], fields: &str, more: &str) -> String {
    let health = "[origins.app.health]\npath = \"/up?deep=1\"\ninterval = \"50ms\"";
    servers(urls, &format!("{fields}\n{health}\n{more}\n"))
}

fn url(origin: &Origin) -> String {
    format!("http://{}", origin.address)
}

/// Starts an origin that answers checks with a changeable status, and all else with `ok`.
fn ailing(status: u16) -> (Origin, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(status));
    let now = Arc::clone(&status);
    let origin = Origin::answering(move |exchange| {
        if exchange.target() == "/up?deep=1" {
            let status = now.load(Ordering::SeqCst);
            exchange.send(format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n"))
        } else {
            exchange.reply(b"ok")
        }
    });
    (origin, status)
}

fn healthy(gateway: &Gateway, server: &str) -> Option<f64> {
    let labels = [("origin", "app"), ("server", server)];
    gateway.value("drip_origin_healthy", &labels)
}

fn ready(gateway: &Gateway) -> Option<u16> {
    gateway.admin("/readyz").map(|answer| answer.status)
}

#[test]
fn an_origin_that_goes_down_is_out_and_once_it_is_back_is_in() {
    let address = free_address();
    let begin = || Origin::at(&address.to_string(), |exchange| exchange.reply(b"ok"));
    let server = format!("http://{address}");
    let origin = begin();
    let gateway = Gateway::start(&checked(std::slice::from_ref(&server), "", ""));
    let status = || gateway.fetch("/").status;
    let state = || (healthy(&gateway, &server), ready(&gateway));
    assert_eq!((status(), state()), (200, (Some(1.0), Some(200))));

    drop(origin);
    eventually("it is out", || state() == (Some(0.0), Some(503)));
    let answer = gateway.fetch("/");
    assert_eq!((answer.status, answer.number("retry-after")), (503, 1));
    let line = gateway.wait_for_line("the server is unhealthy");
    let why = line.contains("Connection refused") && line.contains("in_a_row=3");
    assert!(why, "{line}");

    let _origin = begin();
    eventually("it is in", || state() == (Some(1.0), Some(200)));
    assert_eq!(status(), 200);
    gateway.wait_for_line("the server is healthy again");
}

/// Returns the exit code of `drip health` with these arguments.
fn health(gateway: &Gateway, arguments: &[&str]) -> Option<i32> {
    let asked = drip()
        .arg("health")
        .args(arguments)
        .arg(gateway.site.admin.to_string())
        .stdout(Stdio::null())
        .status();
    asked.expect("a program").code()
}

#[test]
fn a_gateway_without_a_server_is_ready_as_long_as_it_helps_clients_and_lives_in_any_case() {
    let room = "[origins.app.room]\nsessions = 1\nsecret = \"0123456789abcdef0123456789abcdef\"";
    let stale = "[routes.collapse]\nkeep = \"1s\"\nstale = \"10m\"";
    let hold = "rate = \"50r/s\"\nhold = \"30s\"";
    for (name, fields, route, is_ready) in [
        ("nothing", "", "", false),
        ("hold", hold, "", true),
        (
            "hold of requests that never wait",
            hold,
            "max_wait = \"0\"",
            false,
        ),
        ("room", room, "", true),
        ("stale", "", stale, true),
    ] {
        let address = free_address();
        let origin = Origin::at(&address.to_string(), |exchange| exchange.reply(b"ok"));
        let url = format!("http://{address}");
        let checks = "health = { path = \"/up\", interval = \"50ms\" }";
        let file = servers(&[&url], &format!("{checks}\n{fields}"));
        let gateway = Gateway::start(&format!("{file}{route}\n"));
        assert_eq!(gateway.fetch("/").status, 200, "{name}");
        assert_eq!(ready(&gateway), Some(200), "{name}");
        assert_eq!(health(&gateway, &[]), Some(0), "{name}");

        drop(origin);
        eventually("it is out", || healthy(&gateway, &url) == Some(0.0));
        let answer = gateway.admin("/readyz").expect("an answer");
        assert_eq!(answer.status, if is_ready { 200 } else { 503 }, "{name}");
        let text = answer.text();
        assert_contains!(text, "no origin has a server in use");
        assert_eq!(health(&gateway, &[]), Some(i32::from(!is_ready)), "{name}");
        assert_eq!(health(&gateway, &["--live"]), Some(0), "{name}");
    }
}

#[test]
fn neither_stale_responses_before_there_are_some_nor_unused_origins_help() {
    let (origin, other) = (Origin::start(), Origin::start());
    let file = checked(&[url(&origin)], "", "");
    let unused = url(&other);
    let unused =
        format!("[origins.unused]\nservers = [\"{unused}\"]\nhold = \"30s\"\nrate = \"50r/s\"\n");
    let stale = "[routes.collapse]\nstale = \"10m\"\n";
    let gateways = [stale, &unused].map(|more| Gateway::start(&format!("{file}{more}")));
    drop(origin);
    for gateway in gateways {
        eventually("it is not ready", || ready(&gateway) == Some(503));
    }
}

#[test]
fn stale_responses_that_have_expired_help_nobody() {
    let origin = Origin::answering(|exchange| exchange.reply(b"ok"));
    let file = checked(&[url(&origin)], "", "");
    let shared = "[routes.collapse]\nkeep = \"500ms\"\nstale = \"1s\"\n";
    let gateway = Gateway::start(&format!("{file}{shared}"));
    assert_eq!(gateway.fetch("/").status, 200);
    drop(origin);
    eventually("it is not ready", || ready(&gateway) == Some(503));
    assert_eq!(gateway.fetch("/").status, 503);
}

#[test]
fn a_check_that_is_not_answered_in_time_is_a_failure() {
    let slow = Arc::new(AtomicBool::new(false));
    let to_see = Arc::clone(&slow);
    let origin = Origin::answering(move |exchange| {
        if exchange.target() != "/" && to_see.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(400));
        }
        exchange.reply(b"ok")
    });
    let more = "timeout = \"100ms\"\nunhealthy_after = 2";
    let gateway = Gateway::start(&checked(&[url(&origin)], "", more));
    slow.store(true, Ordering::SeqCst);
    eventually("it is out", || {
        healthy(&gateway, &url(&origin)) == Some(0.0)
    });
    gateway.wait_for_line("no answer within 100ms");
    slow.store(false, Ordering::SeqCst);
    eventually("it is in", || healthy(&gateway, &url(&origin)) == Some(1.0));
}

#[test]
fn a_server_that_checks_find_well_again_is_asked_though_fail_timeout_is_not_over() {
    let address = free_address();
    // Closes the connection, on which it would otherwise continue to answer.
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfirst";
    let begin = || Origin::at(&address.to_string(), move |exchange| exchange.send(reply));
    let first = begin();
    let second = Origin::answering(|exchange| exchange.reply(b"second"));
    let servers = [url(&first), url(&second)];
    let file = checked(
        &servers,
        "max_fails = 1\nfail_timeout = \"1h\"",
        "unhealthy_after = 40",
    );
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.fetch("/").body, b"first");

    // The failed request takes the server out at once. 40 failed checks do so 2 s later.
    drop(first);
    eventually("it is taken out", || {
        assert_eq!(gateway.fetch("/").status, 200);
        healthy(&gateway, &servers[0]) == Some(0.0)
    });
    assert_eq!(gateway.fetch("/").body, b"second");
    assert_eq!(ready(&gateway), Some(200), "one is enough");
    gateway.wait_for_line("the server is out of use for fail_timeout");
    gateway.wait_for_line("the server is unhealthy");
    let lines = gateway.log_lines().into_iter().map(|(_, line)| line);
    let out: Vec<_> = lines.filter(|line| line.contains("out of use")).collect();
    let failed = format!(" origin=\"app\" server={} changes=1 in_a_row=1", servers[0]);
    assert!(out[0].contains(&failed), "{out:#?}");
    for line in &out {
        let reason = line.contains(" reason=\"") && line.contains("refused");
        assert!(line.contains(" origin=\"app\" ") && reason, "{line}");
    }

    let _first = begin();
    eventually("it is in", || healthy(&gateway, &servers[0]) == Some(1.0));
    assert_eq!(gateway.fetch("/").body, b"first");
}

#[test]
fn checks_come_once_an_interval_however_many_workers_there_are_and_name_the_origin() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let to_see = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange: &mut Exchange| {
        let host = exchange.field("host").unwrap_or_default();
        let check = format!("{} {host}", exchange.head.first_line);
        to_see.lock().expect("no panic").push(check);
        exchange.reply(b"ok")
    });
    let own = origin.address.to_string();
    for (rule, host) in [("preserve", own.as_str()), ("app.internal", "app.internal")] {
        let fields = format!("host = \"{rule}\"");
        let file = checked(&[url(&origin)], &fields, "").replace("50ms", "200ms");
        let _gateway = Gateway::start(&format!("workers = 4\n{file}"));
        seen.lock().expect("no panic").clear();
        let began = now();
        thread::sleep(Duration::from_secs(1));
        let seen = seen.lock().expect("no panic").clone();
        let most = began.elapsed().as_millis() / 200 + 1;
        assert!((2..=most).contains(&(seen.len() as u128)), "{seen:?}");
        let expected = format!("GET /up?deep=1 HTTP/1.1 {host}");
        assert!(seen.iter().all(|seen| *seen == expected), "{seen:?}");
    }
}

#[test]
fn a_reload_changes_the_checks_and_keeps_what_they_found() {
    let (origin, status) = ailing(200);
    let server = url(&origin);
    let file = checked(std::slice::from_ref(&server), "", "unhealthy_after = 1");
    let gateway = Gateway::start(&file);
    let is = |state| eventually("the state", || healthy(&gateway, &server) == Some(state));
    status.store(500, Ordering::SeqCst);
    is(0.0);

    // Checks are so rare that only the earlier result counts.
    let seldom = file
        .replace("50ms", "1h")
        .replace("_after = 1", "_after = 9");
    gateway.site.write(&seldom);
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(gateway.fetch("/").status, 503);
    let checks = origin.moments("/up").len();
    thread::sleep(Duration::from_millis(300));
    let more = origin.moments("/up").len();
    assert!(more <= checks + 1, "the old checks ended");

    gateway.site.write(&file.replace("/up?deep=1", "/well"));
    is(1.0);
    gateway.site.write(&file);
    is(0.0);
    gateway.site.write(&servers(&[&server], ""));
    eventually("the file without checks is in force", || {
        gateway.fetch("/").status == 200
    });
    let checks = origin.moments("/up").len();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(origin.moments("/up").len(), checks);
}

#[test]
fn it_is_not_ready_while_requests_keep_every_server_out() {
    let missing = urls(&[free_address(), free_address()]);
    let file = servers(&missing, "max_fails = 1\nfail_timeout = \"1s\"");
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.fetch("/").status, 502);
    assert_eq!(ready(&gateway), Some(503));
    let began = now();
    eventually("they get requests again", || ready(&gateway) == Some(200));
    assert!(began.elapsed() < SOON);
}

/// Path and body of each check.
type Asked = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Starts a gRPC server that answers each call with the `ServingStatus`, or with status 12.
///
/// 12 means that the method does not exist. Returns the address, and the checks received.
fn grpc_server(status: &Arc<AtomicU16>) -> (SocketAddr, Asked) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::<Mutex<Vec<_>>>::default();
    let (to_note, status) = (Arc::clone(&asked), Arc::clone(status));
    let serve = async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        while let Ok((tcp, _)) = listener.accept().await {
            let (to_note, status) = (Arc::clone(&to_note), Arc::clone(&status));
            tokio::spawn(async move {
                let Ok(mut connection) = h2::server::handshake(tcp).await else {
                    return;
                };
                while let Some(Ok((mut request, respond))) = connection.accept().await {
                    let (to_note, status) = (Arc::clone(&to_note), status.load(Ordering::SeqCst));
                    tokio::spawn(async move {
                        let mut body = Vec::new();
                        while let Some(Ok(piece)) = request.body_mut().data().await {
                            body.extend_from_slice(&piece);
                        }
                        let asked = (request.uri().path().to_owned(), body);
                        to_note.lock().expect("no panic").push(asked);
                        answer_grpc(respond, status);
                    });
                }
            });
        }
    };
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(serve);
    });
    (address, asked)
}

fn answer_grpc(mut respond: h2::server::SendResponse<bytes::Bytes>, status: u16) {
    let head = http::Response::builder().header("content-type", "application/grpc");
    if status == 12 {
        let head = head.header("grpc-status", "12").body(()).expect("a head");
        let _result = respond.send_response(head, true);
        return;
    }
    let head = head.body(()).expect("a head");
    if let Ok(mut stream) = respond.send_response(head, false) {
        let status = u8::try_from(status).expect("a small number");
        let _result = stream.send_data(vec![0, 0, 0, 0, 2, 8, status].into(), false);
        let ok = http::HeaderValue::from_static("0");
        let trailers = [(http::HeaderName::from_static("grpc-status"), ok)];
        let _result = stream.send_trailers(trailers.into_iter().collect());
    }
}

#[test]
fn servers_of_grpc_are_asked_by_its_health_protocol() {
    let status = Arc::new(AtomicU16::new(1));
    let (address, asked) = grpc_server(&status);
    for (service, message) in [
        ("", &b"\0\0\0\0\0"[..]),
        ("a.B", b"\0\0\0\0\x05\x0a\x03a.B"),
    ] {
        let server = format!("h2c://{address}");
        let checks = format!("health = {{ grpc = \"{service}\", interval = \"50ms\" }}");
        let gateway = Gateway::start(&servers(&[&server], &checks));
        asked.lock().expect("no panic").clear();
        let is_asked_often = || asked.lock().expect("no panic").len() > 5;
        eventually("it gets checks", is_asked_often);
        assert_eq!(healthy(&gateway, &server), Some(1.0));
        let last = asked.lock().expect("no panic").pop();
        let check = "/grpc.health.v1.Health/Check".to_owned();
        assert_eq!(last, Some((check, message.to_vec())));
        for (sick, why) in [(2, "NOT_SERVING"), (12, "grpc-status 12")] {
            status.store(sick, Ordering::SeqCst);
            eventually("it is out", || healthy(&gateway, &server) == Some(0.0));
            let line = gateway.wait_for_line(why);
            assert_contains!(line, "the server is unhealthy");
            status.store(1, Ordering::SeqCst);
            eventually("it is in", || healthy(&gateway, &server) == Some(1.0));
        }
    }
}
