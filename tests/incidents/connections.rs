//! Incidents in which all client connections are in use.

use std::net::TcpStream;

use super::driver::{Incident, Line, RULE, Rule, Severity};
use super::servers::{Server, app};
use crate::support::launch::launch;
use crate::support::{Gateway, Site, assert_contains, connect_from, drip, eventually, now};

/// Opens connections of 127.0.0.`last` that send nothing.
fn idle(gateway: &Gateway, last: u8, count: usize) -> Vec<TcpStream> {
    let client = |_| connect_from([127, 0, 0, last].into(), gateway.address(), None);
    let clients = (0..count).map(client);
    clients.map(|it| it.expect("a connection")).collect()
}

fn wait_for(gateway: &Gateway, count: i64) {
    let connected = || gateway.count("drip_connections", &[]) == count;
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
    let fields = "max_connections = 50\nheader_timeout = \"120s\"\n".to_owned();
    let gateway = Gateway::start(&(fields + &app(&[server.address()], "", "")));
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
    // The line has the number in the first second, perhaps not all of them.
    assert_contains!(line, " WARN ", "max_connections=50", "waiting=");
    assert!(!line.contains("waiting=0"), "no client waits: {line}");
    // The newcomer is behind the others in the kernel's queue.
    let mut newcomer = gateway.ask("/");
    incident.end(|| drop(clients));
    assert_eq!(newcomer.answer().status, 200);
    drop(newcomer);
    wait_for(&gateway, 0);
    // One line in ten minutes, and two if these end meanwhile.
    let log = gateway.log();
    let lines = log.matches("all client connections are in use").count();
    assert!((1..=2).contains(&lines), "{lines} lines");
}

const NO_DESCRIPTORS: Rule = Rule {
    cause: Some("connections_full"),
    severity: Severity::Bad,
    says: &[
        "The limit of file descriptors allows only ",
        "new clients wait in the kernel",
    ],
    helps: &[r"Raise the limit of file descriptors \(`LimitNOFILE` in systemd, `ulimit -n`\)"],
    // It would not help.
    never_helps: &["max_connections"],
    ..RULE
};

#[test]
fn clients_kept_out_by_the_descriptor_limit_lead_to_advice_to_raise_it() {
    const LIMIT: usize = 128;
    let server = Server::start();
    let site = Site::new();
    let fields = "workers = 1\nheader_timeout = \"120s\"\n".to_owned();
    site.write(&(fields + &app(&[server.address()], "", "")));
    let mut program = drip();
    program.arg("-c").arg(site.file());
    let command = launch(&program, &format!("nofile={LIMIT}"));
    let gateway = Gateway::run_as(site, command);
    gateway.wait_until_ready();
    // The start also warns of it, which is not part of the incident.
    let mut incident = Incident::since(&gateway, &NO_DESCRIPTORS, now());
    let clients = idle(&gateway, 1, LIMIT);
    incident.reported();
    let line = gateway.wait_for_line("all client connections are in use");
    assert_contains!(line, "limit of file descriptors");
    incident.end(|| drop(clients));
    wait_for(&gateway, 0);
}
