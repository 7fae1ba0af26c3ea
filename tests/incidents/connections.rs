//! Client connections that are all in use.

use std::net::TcpStream;

use super::clients::{connect_from, crowd, get};
use super::driver::{Incident, Line, RULE, Rule, Severity};
use super::servers::{Mode, Server, app};
use crate::support::{Gateway, eventually};

const MAX: usize = 50;

fn gateway(server: &Server) -> Gateway {
    let server_fields = format!("max_connections = {MAX}\nheader_timeout = \"120s\"\n");
    Gateway::start(&(server_fields + &app(&[server.address()], "", "")))
}

/// Clients at 127.0.0.`last` that send nothing.
fn idle(gateway: &Gateway, last: u8, count: usize) -> Vec<TcpStream> {
    let client = |_| connect_from([127, 0, 0, last].into(), gateway.address());
    (0..count)
        .map(client)
        .map(|it| it.expect("a connection"))
        .collect()
}

fn wait_for(gateway: &Gateway, count: i64) {
    let connected = || gateway.metrics().count("drip_connections", &[]) == count;
    eventually("all are connected", connected);
}

const IDLE: Rule = Rule {
    severity: Severity::Bad,
    cause: Some("connections_full"),
    says: &[
        r"50 of 50 connections are in use; new clients wait in the kernel \(30 now\)",
        r"\b40\b",
        r"127\.0\.0\.9",
        "idle",
    ],
    helps: &["keep_alive", r"Raise `server\.max_connections`"],
    never: &[r"\bapp\b"],
    log: Some(Line {
        levels: &["ERROR"],
        parts: &["connections"],
    }),
    ..RULE
};

#[test]
fn idle_connections_that_take_all_are_reported_by_their_address() {
    let server = Server::start();
    let gateway = gateway(&server);
    let mut clients = Vec::new();
    let mut incident = Incident::begin(&gateway, &IDLE, || {
        clients.extend(idle(&gateway, 9, 40));
        for last in 10..20 {
            clients.extend(idle(&gateway, last, 1));
        }
        wait_for(&gateway, 50);
        clients.extend(idle(&gateway, 1, 30));
    });
    incident.reported();
    let line = gateway.wait_for_line("all client connections are in use");
    // How many there were in the first second: perhaps not all yet.
    for part in [" WARN ", "max_connections=50", "waiting="] {
        assert!(line.contains(part), "{line}");
    }
    assert!(!line.contains("waiting=0"), "nobody waits: {line}");
    incident.end(|| drop(clients));
    wait_for(&gateway, 0);
    // One line in ten minutes, and two where these end meanwhile.
    let log = gateway.log();
    let lines = log.matches("all client connections are in use").count();
    assert!((1..=2).contains(&lines), "{lines} lines");
}

const BUSY: Rule = Rule {
    severity: Severity::Bad,
    says: &["50 of 50", "none .*idle|no .*idle|\\b0 .*idle"],
    helps: &["max_connections|app|origin"],
    never_helps: &["keep_alive"],
    // Answers that have begun take 4 s.
    calm: 15,
    ..RULE
};

#[test]
fn connections_that_all_wait_for_answers_are_reported_without_keep_alive() {
    let server = Server::start();
    server.be(Mode::VerySlow);
    let gateway = gateway(&server);
    let mut incident = Incident::begin(&gateway, &BUSY, || {
        // Three times as many as may connect: the first third takes 4 s.
        crowd(&gateway, 3 * MAX, |_| get("/"));
    });
    incident.reported();
    incident.end(|| server.be(Mode::Fine));
}
