//! Incidents of clients that disconnect before the origin answers, or while they wait.

use std::thread;
use std::time::Duration;

use super::clients::{Background, get, steady};
use super::driver::{Incident, RULE, Rule, Severity, stays_quiet};
use super::servers::{Mode, Server, app, limited};
use crate::support::Gateway;
use crate::support::night::day_or_night;

/// Starts clients that disconnect after a second, 20 per second.
fn hasty(gateway: &Gateway) -> Background {
    steady(gateway, Duration::from_millis(50), |_| get("/").in_haste())
}

/// Plays an incident of such clients.
fn play(gateway: &Gateway, rule: &Rule) {
    let mut clients = None;
    let mut incident = Incident::begin(gateway, rule, || clients = Some(hasty(gateway)));
    incident.reported();
    if !rule.never.is_empty() {
        // The first waiter is admitted just before its client gives up, so it disconnects at the
        // origin.
        thread::sleep(Duration::from_secs(day_or_night(2, 6)));
    }
    incident.end(|| drop(clients));
}

const OUTAGE: Rule = Rule {
    cause: Some("leaving"),
    severity: Severity::Bad,
    about: Some("app"),
    says: &["100 % of clients leave before app answers, after about "],
    helps: &["Origin app is slower than its clients wait: find out what it waits for"],
    // The last clients disconnect within a second; their window lasts three, and a sample one more.
    calm: 8,
    ..RULE
};

#[test]
fn an_outage_by_client_timeouts_is_reported_in_red() {
    let server = Server::start();
    server.be(Mode::VerySlow);
    play(&Gateway::start(&app(&[server.address()], "", "")), &OUTAGE);
}

const AT_GATE: Rule = Rule {
    says: &[
        " % leave the gate of app before their turn, after about ",
        "Set `max_wait = ",
        " for its routes",
    ],
    helps: &[r"raise its `rate`, which is 5\.0 a second"],
    never: &["before app answers"],
    ..OUTAGE
};

#[test]
fn clients_that_disconnect_at_a_gate_are_reported_with_the_binding_limit() {
    let server = Server::start();
    let gate = "rate = \"5r/s\"\nqueue_timeout = \"20s\"";
    play(
        &Gateway::start(&app(&[server.address()], gate, "")),
        &AT_GATE,
    );
}

const IN_ZONE: Rule = Rule {
    about: Some("per_key"),
    says: &[" % leave per_key before their turn, after about "],
    helps: &["Set `max_wait = "],
    ..AT_GATE
};

#[test]
fn who_is_let_through_just_before_giving_up_has_not_left_because_of_the_origin() {
    let server = Server::start();
    let zone = "key = \"$remote_addr\"\nrate = \"5r/s\"";
    let file = limited(server.address(), zone, "/", "burst = 100");
    play(&Gateway::start(&file), &IN_ZONE);
}

#[test]
fn clients_that_end_their_uploads_have_not_left_because_of_the_origin() {
    let server = Server::start();
    let gateway = Gateway::start(&app(&[server.address()], "", ""));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..day_or_night(20, 30) {
                let mut client = gateway.connect();
                client.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nbegin");
                thread::sleep(Duration::from_millis(200));
            }
        });
        stays_quiet(&gateway, Duration::from_secs(6));
    });
}
