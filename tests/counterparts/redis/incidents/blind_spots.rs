//! Incidents that no other figure shows: each was once told as nothing, or as the fault of another.

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::scene::{Sender, Wanted, begin, calm, calm_without, file, text, told};
use crate::support::{Client, Gateway, Origin, eventually};

#[test]
fn all_connections_in_use_is_the_first_thing_told() {
    const MAX: usize = 50;
    const MORE: usize = 30;
    let origin = Origin::start();
    let gateway = Gateway::start(&format!(
        "max_connections = {MAX}\nheader_timeout = \"120s\"\n{}",
        file(
            &origin,
            "key = \"$remote_addr\"\nrate = \"1000r/s\"",
            "burst = 9"
        )
    ));
    let connected = |count| {
        let metrics = gateway.metrics();
        metrics.count("drip_connections", &[]) == count
            && metrics.count("drip_max_connections", &[]) == 50
    };
    let idle = || Client::connect(gateway.address());
    let first: Vec<_> = (0..MAX).map(|_| idle()).collect();
    eventually("all are connected", || connected(50));
    let others: Vec<_> = (0..MORE).map(|_| idle()).collect();
    let wanted = Wanted {
        cause: "connections_full",
        is_bad: true,
        says: &["(30 now)"],
        remedy: "Raise `server.max_connections`",
    };
    let headline = told(&gateway, &wanted);
    let title = "50 of 50 connections are in use; new clients wait in the kernel (30 now)";
    assert_eq!(headline["title"], title);
    let line = gateway.wait_for_line("all client connections are in use");
    // How many there were in the first second: perhaps not all yet.
    for part in [" WARN ", "max_connections=50", "waiting="] {
        assert!(line.contains(part), "{line}");
    }
    assert!(!line.contains("waiting=0"), "nobody waits: {line}");
    drop((first, others));
    calm(&gateway);
    eventually("the metric says so", || connected(0));
    gateway.wait_for_line("client connections are free again");
    let log = gateway.log();
    assert_eq!(log.matches("all client connections are in use").count(), 1);
}

#[test]
fn a_key_that_no_client_sends_is_told_and_counted() {
    let origin = Origin::start();
    let zone = "key = \"$http_x_apikey\"\nrate = \"1r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    begin(&gateway);
    let _sender = Sender::start(gateway.address(), |_| "X-API-Key: k\r\n".to_owned());
    let wanted = Wanted {
        cause: "no_key",
        is_bad: false,
        says: &["have no $http_x_apikey", "All requests on /"],
        remedy: "Correct the `key` of per_key",
    };
    let headline = told(&gateway, &wanted);
    assert_eq!(headline["about"], "per_key");
    assert!(text(&headline).contains("per_key limits none of them"));
    let labels = [("zone", "per_key"), ("status", "no_key")];
    let metrics = gateway.metrics();
    assert!(metrics.count("drip_zone_requests_total", &labels) > 20);
    // Corrected, the limit limits.
    let corrected = zone.replace("apikey", "api_key");
    let limit = "burst = 2, nodelay = true";
    gateway.site.write(&file(&origin, &corrected, limit));
    let wanted = Wanted {
        cause: "rejecting",
        is_bad: false,
        says: &["All requests share one key: k"],
        remedy: "If k is one client, it asks for more than its limit",
    };
    told(&gateway, &wanted);
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
    let _sender = Sender::start(gateway.address(), |_| String::new());
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
fn a_balancer_that_is_not_trusted_is_named_and_no_client_is_blamed() {
    let origin = Origin::start();
    let zone = "key = \"$remote_addr\"\nrate = \"5r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    let clients = |nth| format!("X-Forwarded-For: 192.0.2.{}\r\n", nth % 40);
    begin(&gateway);
    let sender = Sender::start(gateway.address(), clients);
    let wanted = Wanted {
        cause: "untrusted_proxy",
        is_bad: false,
        says: &["counts all clients behind 127.0.0.1 as one"],
        remedy: "add it to `server.trusted_proxies`",
    };
    let headline = told(&gateway, &wanted);
    assert!(!text(&headline).contains("One client"), "{headline:#}");
    let proxied = || {
        let metrics = gateway.metrics();
        metrics.count("drip_zone_untrusted_proxy", &[("zone", "per_key")])
    };
    assert_eq!(proxied(), 1);
    // Trusted, each of its clients has a limit of its own.
    let trusting = "trusted_proxies = [\"127.0.0.1\"]\n";
    let text = file(&origin, zone, "burst = 2, nodelay = true");
    gateway.site.write(&format!("{trusting}{text}"));
    calm_without(&gateway, "One client");
    assert_eq!(proxied(), 0);
    drop(sender);
}

#[test]
fn a_constant_key_is_told_as_one_limit_for_all() {
    let origin = Origin::start();
    let zone = "key = \"everyone\"\nrate = \"5r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    let start = || Sender::start(gateway.address(), |_| String::new());
    let sender = start();
    let wanted = Wanted {
        cause: "rejecting",
        is_bad: true,
        says: &["All requests share one key: everyone"],
        remedy: "the same for all clients, so all share one limit",
    };
    let headline = told(&gateway, &wanted);
    assert!(!text(&headline).contains("not affected"), "{headline:#}");
    // Its rejections are told for some seconds after the last one.
    drop(sender);
    calm_without(&gateway, "One client");
    let _sender = start();
    told(&gateway, &wanted);
    // Each client has a limit of its own, and this one keeps to it.
    let own = "key = \"$remote_addr\"\nrate = \"1000r/s\"";
    gateway
        .site
        .write(&file(&origin, own, "burst = 2, nodelay = true"));
    calm_without(&gateway, "One client");
}

#[test]
fn an_access_log_that_may_not_grow_is_told_while_requests_are_served() {
    let origin = Origin::start();
    let rest = file(
        &origin,
        "key = \"$remote_addr\"\nrate = \"1000r/s\"",
        "burst = 9",
    );
    let gateway = Gateway::start(&format!("{rest}[log]\naccess = \"access.log\"\n"));
    let id = i32::try_from(gateway.id()).ok();
    let id = id.and_then(Pid::from_raw);
    let limit = Rlimit {
        current: Some(2_000),
        maximum: Some(1 << 30),
    };
    prlimit(id, Resource::Fsize, limit).expect("a limit");
    let _sender = Sender::start(gateway.address(), |_| String::new());
    let wanted = Wanted {
        cause: "log_lost",
        is_bad: false,
        says: &["cannot be written", "File too large"],
        remedy: "raise the limit on the size of files (`LimitFSIZE` in systemd, `ulimit -f`)",
    };
    told(&gateway, &wanted);
    let served = || {
        let labels = [("route", "/"), ("code", "200")];
        gateway.metrics().count("drip_requests_total", &labels)
    };
    let before = served();
    eventually("requests are served", || served() > before + 20);
    let more = Rlimit {
        current: Some(1 << 30),
        ..limit
    };
    prlimit(id, Resource::Fsize, more).expect("a limit");
    calm(&gateway);
}
