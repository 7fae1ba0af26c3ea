//! Zones whose key is wrong, or whose keys are clients to be careful with.

use std::thread;
use std::time::Duration;

use super::clients::{get, steady};
use super::driver::{Incident, Is, RULE, Rule, Series, Severity, pauses};
use super::servers::{Server, limited};
use crate::support::{Gateway, now};

const UNTRUSTED: Rule = Rule {
    about: Some("per_key"),
    says: &[r"127\.0\.0\.1", "X-Forwarded-For"],
    helps: &["trusted_proxies"],
    never: &["plan", "one client asks"],
    metrics: &[Series {
        name: "drip_zone_untrusted_proxy",
        labels: &[("zone", "per_key")],
        is: Is::Exactly(1.0),
    }],
    ..RULE
};

#[test]
fn a_balancer_that_is_not_trusted_is_reported_and_no_client() {
    let server = Server::start();
    let zone = "key = \"$remote_addr\"\nrate = \"5r/s\"";
    let limit = "burst = 2, nodelay = true";
    let file = limited(server.address(), zone, "/", limit);
    let gateway = Gateway::start(&file);
    let mut clients = None;
    let mut incident = Incident::begin(&gateway, &UNTRUSTED, || {
        let client = |nth| get("/").with(&format!("X-Forwarded-For: 192.0.2.{}", nth % 40));
        clients = Some(steady(&gateway, Duration::from_millis(20), client));
    });
    incident.reported();
    // Trusted, each of its clients has a limit of its own.
    let trusting = format!("trusted_proxies = [\"127.0.0.1\"]\n{file}");
    incident.end(|| gateway.site.write(&trusting));
    let metrics = gateway.metrics();
    let labels = [("zone", "per_key")];
    assert_eq!(metrics.count("drip_zone_untrusted_proxy", &labels), 0);
}

const NO_KEY: Rule = Rule {
    worst: Severity::Warn,
    about: Some("per_key"),
    says: &[
        r"\$http_x_apikey",
        "per_key",
        "none|not limit|limits nobody",
    ],
    helps: &["key"],
    ..RULE
};

#[test]
fn a_misspelt_key_is_reported_at_four_requests_a_second() {
    let server = Server::start();
    let zone = "key = \"$http_x_apikey\"\nrate = \"1r/s\"";
    let limit = "burst = 2, nodelay = true";
    let file = limited(server.address(), zone, "/", limit);
    let gateway = Gateway::start(&file);
    let mut clients = None;
    let mut incident = Incident::begin(&gateway, &NO_KEY, || {
        let client = |nth| get("/").with(&format!("X-API-Key: k{}", nth % 8));
        clients = Some(steady(&gateway, Duration::from_millis(250), client));
    });
    let began = now();
    incident.reported();
    // Not only for the last seconds.
    thread::sleep(Duration::from_secs(3));
    let headline = incident.latest();
    let lacks = NO_KEY.lacks(&headline, &[]);
    assert!(lacks.is_empty(), "{lacks:#?}\n{headline:#}");
    let repaired = file.replace("x_apikey", "x_api_key");
    incident.end(|| gateway.site.write(&repaired));
    // The limit limits: half a request a second of a key passes.
    let _greedy = steady(&gateway, Duration::from_millis(50), |_| {
        get("/").with("X-API-Key: greedy")
    });
    let limited = || {
        let labels = [("zone", "per_key"), ("status", "rejected")];
        gateway.metrics().count("drip_zone_requests_total", &labels) > 0
    };
    while !limited() {
        let limit = Duration::from_secs(40) + pauses(began);
        assert!(began.elapsed() < limit, "nobody is limited");
        thread::sleep(Duration::from_millis(100));
    }
}

const LOGIN: Rule = Rule {
    about: Some("per_key"),
    says: &[r"127\.0\.0\.1"],
    helps: &["address|deny|log"],
    never: &["plan", "queue is full", "raise .*rate"],
    ..RULE
};

#[test]
fn a_client_that_guesses_passwords_is_reported_and_gets_no_plan() {
    let server = Server::start();
    let zone = "key = \"$remote_addr\"\nrate = \"5r/m\"";
    let limit = "burst = 3, nodelay = true";
    let file = limited(server.address(), zone, "/login", limit);
    let gateway = Gateway::start(&file);
    let mut guesses = None;
    let mut incident = Incident::begin(&gateway, &LOGIN, || {
        let every = Duration::from_millis(200);
        guesses = Some(steady(&gateway, every, |_| get("/login")));
    });
    incident.reported();
    incident.end(|| drop(guesses));
}
