//! The operators' port.

use std::fs;
use std::time::Duration;

use crate::support::{Client, Gateway, Origin, Site, eventually, fetch, one_zone};

#[test]
fn metrics_show_what_became_of_the_requests_under_the_promised_names() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "4r/s", "burst = 2"));
    let mut clients: Vec<_> = (0..3)
        .map(|_| Client::ask(gateway.address(), "/?key=a"))
        .collect();
    gateway.wait_for_depth(2);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
    assert!(
        clients
            .iter_mut()
            .all(|client| client.answer().status == 200)
    );
    gateway.wait_for_depth(0);

    let metrics = gateway.metrics();
    let requests = |code| metrics.count("drip_requests_total", &[("route", "/"), ("code", code)]);
    assert_eq!((requests("200"), requests("429")), (3, 1));
    let zone = |name, label, value| metrics.count(name, &[("zone", "z"), (label, value)]);
    for (status, count) in [
        ("passed", 1),
        ("delayed", 2),
        ("rejected", 1),
        ("cancelled", 0),
    ] {
        assert_eq!(
            zone("drip_zone_requests_total", "status", status),
            count,
            "{status}"
        );
    }
    assert_eq!(zone("drip_zone_rejections_total", "reason", "burst"), 1);
    assert_eq!(zone("drip_zone_queue_wait_seconds_count", "zone", "z"), 2);
    assert_eq!(zone("drip_zone_queue_wait_seconds_bucket", "le", "0.1"), 0);
    assert_eq!(zone("drip_zone_queue_wait_seconds_bucket", "le", "1"), 2);
    assert_eq!(zone("drip_zone_queue_wait_seconds_bucket", "le", "+Inf"), 2);
    let waited = metrics
        .value("drip_zone_queue_wait_seconds_sum", &[("zone", "z")])
        .expect("a sum");
    assert!(
        (0.65..0.95).contains(&waited),
        "0.25 and 0.5 s together, not {waited}"
    );
    assert_eq!(zone("drip_zone_rate", "zone", "z"), 4);
    assert_eq!(metrics.count("drip_config_last_reload_successful", &[]), 1);
    eventually("the key is shown", || gateway.zone("drip_zone_keys") == 1);
    for name in [
        "drip_zone_queue_depth",
        "drip_zone_evictions_total",
        "drip_zone_drain_lateness_seconds_count",
        "drip_config_reloads_total",
        "drip_config_last_reload_success_timestamp_seconds",
        "drip_build_info",
    ] {
        assert!(
            metrics.value(name, &[]).is_some(),
            "no {name} in\n{}",
            metrics.0
        );
    }
}

#[test]
fn each_metric_has_its_help_and_type() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "4r/s", "burst = 2"));
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    let answer = gateway.admin("/metrics").expect("an admin port");
    assert!(
        answer
            .field("content-type")
            .is_some_and(|kind| kind.starts_with("text/plain; version=0.0.4"))
    );
    let text = answer.text();
    for (name, kind) in [
        ("drip_requests_total", "counter"),
        ("drip_zone_requests_total", "counter"),
        ("drip_zone_queue_depth", "gauge"),
        ("drip_zone_rate", "gauge"),
        ("drip_zone_keys", "gauge"),
        ("drip_config_last_reload_successful", "gauge"),
    ] {
        assert!(
            text.contains(&format!("# TYPE {name} {kind}\n")),
            "no type of {name} in\n{text}"
        );
        assert!(
            text.contains(&format!("# HELP {name} ")),
            "no help on {name} in\n{text}"
        );
    }
}

#[test]
fn health_and_readiness_answer_200_and_unknown_paths_404() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "4r/s", "burst = 2"));
    for (path, status) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/nothing", 404),
    ] {
        assert_eq!(
            gateway.admin(path).map(|answer| answer.status),
            Some(status),
            "{path}"
        );
    }
    assert_eq!(origin.arrivals().len(), 0);
}

/// The ports of this host's IPv4 and IPv6 sockets on which the process listens.
fn listening_ports(process: u32) -> Vec<u16> {
    let open: Vec<_> = fs::read_dir(format!("/proc/{process}/fd"))
        .expect("a process")
        .filter_map(|fd| {
            Some(
                fs::read_link(fd.ok()?.path())
                    .ok()?
                    .to_string_lossy()
                    .into_owned(),
            )
        })
        .collect();
    let tables =
        ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{process}/net/{table}")));
    let mut ports = Vec::new();
    for line in tables
        .iter()
        .flatten()
        .flat_map(|table| table.lines().skip(1))
    {
        let columns: Vec<_> = line.split_whitespace().collect();
        if columns[3] == "0A" && open.contains(&format!("socket:[{}]", columns[9])) {
            let port = columns[1]
                .rsplit(':')
                .next()
                .and_then(|port| u16::from_str_radix(port, 16).ok());
            ports.extend(port);
        }
    }
    ports.sort_unstable();
    ports
}

#[test]
fn admin_off_opens_no_admin_port() {
    let origin = Origin::start();
    let site = Site::new();
    let file = one_zone(&origin, "4r/s", "burst = 2");
    let text = site
        .text(&file)
        .replace(&format!("\"{}\"", site.admin), "\"off\"");
    fs::write(site.file(), text).expect("a file");
    let gateway = Gateway::run(site);
    gateway.wait_for_line("listening");
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    assert_eq!(listening_ports(gateway.id()), [gateway.address().port()]);

    let with = Gateway::start(&file);
    let mut both = [with.address().port(), with.site.admin.port()];
    both.sort_unstable();
    assert_eq!(listening_ports(with.id()), both);
}

#[test]
fn histogram_edges_are_those_promised() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "20r/s", "burst = 2"));
    let mut clients: Vec<_> = (0..2)
        .map(|_| Client::ask(gateway.address(), "/?key=a"))
        .collect();
    assert!(
        clients
            .iter_mut()
            .all(|client| client.answer().status == 200)
    );
    let metrics = gateway.metrics();
    let edges: Vec<_> = metrics
        .0
        .lines()
        .filter(|line| line.starts_with("drip_zone_queue_wait_seconds_bucket"))
        .filter_map(|line| line.split("le=\"").nth(1)?.split('"').next())
        .collect();
    let wanted = "0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 25 60 +Inf";
    assert_eq!(edges.join(" "), wanted);
}

#[test]
fn depth_follows_those_who_wait() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "10r/s", "burst = 9"));
    let clients: Vec<_> = (0..5)
        .map(|_| Client::ask(gateway.address(), "/?key=a"))
        .collect();
    origin.wait_for(2);
    let depth = gateway.zone("drip_zone_queue_depth");
    assert!(
        (1..=3).contains(&depth),
        "two of five have left, {depth} wait"
    );
    drop(clients);
    gateway.wait_for_depth(0);
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(
        gateway.zone("drip_zone_queue_depth"),
        0,
        "nobody is taken out twice"
    );
}

#[test]
fn the_admin_port_answers_head_as_it_answers_get() {
    let gateway = Gateway::start(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    for path in ["/healthz", "/readyz", "/metrics"] {
        let mut client = Client::connect(gateway.site.admin);
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        let head = client.head();
        assert!(
            head.first_line.contains(" 200 "),
            "{path}: {}",
            head.first_line
        );
    }
}

#[test]
fn the_admin_port_is_not_reached_through_the_traffic_port() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1000r/s", "burst = 9"));
    let admin = gateway.site.admin;
    for head in [
        "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(),
        format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\n\r\n"),
        format!("GET http://{admin}/metrics HTTP/1.1\r\nHost: {admin}\r\n\r\n"),
        "GET /readyz HTTP/1.1\r\nHost: localhost:9090\r\n\r\n".to_owned(),
        "POST /api/reload HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n".to_owned(),
    ] {
        let mut client = Client::connect(gateway.address());
        client.send(head.as_bytes());
        // Whatever it is, it is the origin's.
        assert_eq!(client.answer().body, b"ok", "{head}");
    }
    assert_eq!(origin.arrivals().len(), 5);
}
