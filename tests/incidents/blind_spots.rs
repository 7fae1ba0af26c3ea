//! Incidents that no other figure shows: each was once told as nothing, or as the fault of another.

use super::driver::{RULE, Rule, Severity, text};
use super::scene::{begin, calm, calm_without, file, reported, sender};
use crate::support::{Gateway, Origin, eventually};

#[test]
fn a_key_that_no_client_sends_is_told_and_counted() {
    let origin = Origin::start();
    let zone = "key = \"$http_x_apikey\"\nrate = \"1r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    begin(&gateway);
    let _sending = sender(gateway.address(), |_| "X-API-Key: k\r\n".to_owned());
    let rule = Rule {
        cause: Some("no_key"),
        says: &[r"have no \$http_x_apikey", "All requests on /"],
        helps: &["Correct the `key` of per_key"],
        ..RULE
    };
    let headline = reported(&gateway, &rule);
    assert_eq!(headline["about"], "per_key");
    assert!(text(&headline).contains("per_key limits none of them"));
    let labels = [("zone", "per_key"), ("status", "no_key")];
    let metrics = gateway.metrics();
    assert!(metrics.count("drip_zone_requests_total", &labels) > 20);
    // Corrected, the limit limits.
    let corrected = zone.replace("apikey", "api_key");
    let limit = "burst = 2, nodelay = true";
    gateway.site.write(&file(&origin, &corrected, limit));
    let rule = Rule {
        cause: Some("rejecting"),
        says: &["All requests share one key: k"],
        helps: &["If k is one client, it asks for more than its limit"],
        ..RULE
    };
    reported(&gateway, &rule);
    // With a rate that is enough, nothing is left to say.
    let enough = corrected.replace("1r/s", "1000r/s");
    gateway.site.write(&file(&origin, &enough, limit));
    calm(&gateway);
}

#[test]
fn clients_that_are_exempt_have_no_key_on_purpose() {
    let origin = Origin::start();
    let zone = "key = \"$http_x_apikey\"\nrate = \"1r/s\"\nexempt = [\"127.0.0.1\"]";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2"));
    let _sending = sender(gateway.address(), |_| String::new());
    let passed = || {
        let labels = [("route", "/"), ("code", "200")];
        gateway.metrics().count("drip_requests_total", &labels) > 150
    };
    eventually("traffic of some seconds", passed);
    calm(&gateway);
    let labels = [("zone", "per_key"), ("status", "no_key")];
    let metrics = gateway.metrics();
    assert_eq!(metrics.count("drip_zone_requests_total", &labels), 0);
}

#[test]
fn a_constant_key_is_told_as_one_limit_for_all() {
    let origin = Origin::start();
    let zone = "key = \"everyone\"\nrate = \"5r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    let start = || sender(gateway.address(), |_| String::new());
    let sending = start();
    let rule = Rule {
        cause: Some("rejecting"),
        severity: Severity::Bad,
        says: &["All requests share one key: everyone"],
        helps: &["the same for all clients, so all share one limit"],
        ..RULE
    };
    let headline = reported(&gateway, &rule);
    assert!(!text(&headline).contains("not affected"), "{headline:#}");
    // Its rejections are told for some seconds after the last one.
    drop(sending);
    calm_without(&gateway, "One client");
    let _sending = start();
    reported(&gateway, &rule);
    // Each client has a limit of its own, and this one keeps to it.
    let own = "key = \"$remote_addr\"\nrate = \"1000r/s\"";
    gateway
        .site
        .write(&file(&origin, own, "burst = 2, nodelay = true"));
    calm_without(&gateway, "One client");
}
