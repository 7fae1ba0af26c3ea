//! Clients that leave: before an origin answers, or before their turn.

use std::thread;
use std::time::Duration;

use super::driver::{RULE, Rule, Severity, text};
use super::scene::{begin, calm, file, reported};
use super::traffic::HastyClients;
use crate::support::night::day_or_night;
use crate::support::operator::json;
use crate::support::{Client, Gateway, Origin, now, one_origin};

/// A gateway before an origin with these settings, without limits in zones.
fn before(origin: &Origin, settings: &str) -> Gateway {
    Gateway::start(&one_origin(origin.address, "", settings))
}

#[test]
fn an_outage_by_the_timeouts_of_clients_is_told_in_red() {
    let origin = Origin::answering(|exchange| {
        thread::sleep(Duration::from_secs(3));
        exchange.reply(b"ok")
    });
    let gateway = before(&origin, "");
    begin(&gateway);
    let clients = HastyClients::start(gateway.address());
    let rule = Rule {
        cause: Some("leaving"),
        severity: Severity::Bad,
        says: &["100 % of clients leave before app answers, after about "],
        helps: &["Origin app is slower than its clients wait: find out what it waits for"],
        ..RULE
    };
    let headline = reported(&gateway, &rule);
    assert_eq!(headline["about"], "app");
    drop(clients);
    calm(&gateway);
}

#[test]
fn clients_that_leave_at_a_gate_are_told_with_what_binds() {
    let origin = Origin::start();
    let gateway = before(&origin, "rate = \"5r/s\"\nqueue_timeout = \"20s\"");
    begin(&gateway);
    let clients = HastyClients::start(gateway.address());
    let rule = Rule {
        cause: Some("leaving"),
        severity: Severity::Bad,
        says: &[
            " % leave the gate of app before their turn, after about ",
            "Set `max_wait = ",
            " for its routes",
        ],
        helps: &[r"raise its `rate`, which is 5\.0 a second"],
        ..RULE
    };
    let headline = reported(&gateway, &rule);
    assert_eq!(headline["about"], "app");
    check_that_the_origin_is_not_blamed_for_a_while(&gateway);
    drop(clients);
    calm(&gateway);
}

fn check_that_the_origin_is_not_blamed(gateway: &Gateway) {
    let told = json(gateway, "/api/headline")["headline"].clone();
    assert!(!text(&told).contains("before app answers"), "{told:#}");
}

/// The first in a queue is let through just before its client gives up, and leaves at the origin.
fn check_that_the_origin_is_not_blamed_for_a_while(gateway: &Gateway) {
    let began = now();
    while began.elapsed() < Duration::from_secs(day_or_night(2, 6)) {
        check_that_the_origin_is_not_blamed(gateway);
        thread::sleep(Duration::from_millis(300));
    }
}

#[test]
fn who_is_let_through_just_before_giving_up_has_not_left_because_of_the_origin() {
    let origin = Origin::answering(|exchange| {
        thread::sleep(Duration::from_millis(20));
        exchange.reply(b"ok")
    });
    let zone = "key = \"$remote_addr\"\nrate = \"5r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 100"));
    begin(&gateway);
    let clients = HastyClients::start(gateway.address());
    let rule = Rule {
        cause: Some("leaving"),
        severity: Severity::Bad,
        says: &[" % leave per_key before their turn, after about "],
        helps: &["Set `max_wait = "],
        ..RULE
    };
    reported(&gateway, &rule);
    check_that_the_origin_is_not_blamed_for_a_while(&gateway);
    drop(clients);
    calm(&gateway);
}

#[test]
fn clients_that_end_their_uploads_have_not_left_because_of_the_origin() {
    let origin = Origin::start();
    let gateway = before(&origin, "");
    begin(&gateway);
    for _ in 0..day_or_night(15, 30) {
        let mut client = Client::connect(gateway.address());
        client.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nbegin");
        thread::sleep(Duration::from_millis(200));
        drop(client);
        check_that_the_origin_is_not_blamed(&gateway);
    }
}
