//! Incidents of zones whose key is wrong, or whose keys belong to special clients.

use std::thread;
use std::time::Duration;

use super::clients::{STEADY, get, steady};
use super::driver::{Incident, Is, RULE, Rule, Series, Severity, pauses, stays_quiet, text};
use super::servers::{Server, limited};
use crate::support::{Gateway, eventually, now};

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
    // If the balancer is trusted, each of its clients has its own limit.
    let trusting = format!("trusted_proxies = [\"127.0.0.1\"]\n{file}");
    incident.end(|| gateway.site.write(&trusting));
    let metrics = gateway.metrics();
    let labels = [("zone", "per_key")];
    assert_eq!(metrics.count("drip_zone_untrusted_proxy", &labels), 0);
}

const NO_KEY: Rule = Rule {
    cause: Some("no_key"),
    worst: Severity::Warn,
    about: Some("per_key"),
    says: &[
        r"have no \$http_x_apikey",
        "All requests on /",
        "per_key limits none of them",
    ],
    helps: &["Correct the `key` of per_key"],
    ..RULE
};

#[test]
fn a_key_that_no_client_sends_is_reported_and_counted_at_four_requests_a_second() {
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
    incident.reported();
    // Not only for the last seconds.
    thread::sleep(Duration::from_secs(3));
    let headline = incident.latest();
    let lacks = NO_KEY.lacks(&headline, &[]);
    assert!(lacks.is_empty(), "{lacks:#?}\n{headline:#}");
    let counted = |status| gateway.zone_requests("per_key", status);
    assert!(counted("no_key") > 10);
    incident.end(|| gateway.site.write(&file.replace("x_apikey", "x_api_key")));
    // The limit works: half a request per second of a key passes.
    let _greedy = steady(&gateway, Duration::from_millis(50), |_| {
        get("/").with("X-API-Key: greedy")
    });
    eventually("the key is limited", || counted("rejected") > 0);
}

#[test]
fn clients_that_are_exempt_have_no_key_on_purpose() {
    let server = Server::start();
    let zone =
        "key = \"$http_x_apikey\"\nmask_keys = true\nrate = \"1r/s\"\nexempt = [\"127.0.0.1\"]";
    let gateway = Gateway::start(&limited(server.address(), zone, "/", "burst = 2"));
    let _clients = steady(&gateway, STEADY, |_| get("/"));
    stays_quiet(&gateway, Duration::from_secs(6));
    let labels = [("zone", "per_key"), ("status", "no_key")];
    let metrics = gateway.metrics();
    let answered = [("route", "/"), ("code", "200")];
    assert!(metrics.count("drip_requests_total", &answered) > 100);
    assert_eq!(metrics.count("drip_zone_requests_total", &labels), 0);
}

const ALL_SHARE: Rule = Rule {
    cause: Some("rejecting"),
    severity: Severity::Bad,
    says: &["All requests share one key: everyone"],
    helps: &["the same for all clients, so all share one limit"],
    ..RULE
};

#[test]
fn a_constant_key_is_reported_as_one_limit_for_all() {
    let server = Server::start();
    let file = |zone: &str| limited(server.address(), zone, "/", "burst = 2, nodelay = true");
    let gateway = Gateway::start(&file("key = \"everyone\"\nrate = \"5r/s\""));
    let mut clients = None;
    let mut incident = Incident::begin(&gateway, &ALL_SHARE, || {
        clients = Some(steady(&gateway, STEADY, |_| get("/")));
    });
    let received = incident.reported();
    assert!(!text(&received).contains("not affected"), "{received:#}");
    // Each client has its own limit, and this one stays below it.
    let own = "key = \"$remote_addr\"\nrate = \"1000r/s\"";
    gateway.site.write(&file(own));
    let ended = now();
    eventually("calm, and no client is blamed meanwhile", || {
        let last = incident.latest();
        assert!(!text(&last).contains("One client"), "{last:#}");
        Severity::of(&last) < Severity::Warn
    });
    let limit = Duration::from_secs(RULE.calm) + pauses(ended);
    assert!(ended.elapsed() < limit, "{:?}", ended.elapsed());
    incident.leave();
}
