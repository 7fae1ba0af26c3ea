//! The admin port.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::support::operator::json;
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
        ("rejected_elsewhere", 0),
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
    let edges: Vec<_> = metrics
        .0
        .lines()
        .filter(|line| line.starts_with("drip_zone_queue_wait_seconds_bucket"))
        .filter_map(|line| line.split("le=\"").nth(1)?.split('"').next())
        .collect();
    let promised = "0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 1.5 2 2.5 3 4 5 7.5 10 25 60 +Inf";
    assert_eq!(edges.join(" "), promised);
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
    let line = gateway.wait_for_line("listening");
    assert!(!line.contains("live_page"), "{line}");
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    assert_eq!(listening_ports(gateway.id()), [gateway.address().port()]);

    let with = Gateway::start(&file);
    let mut both = [with.address().port(), with.site.admin.port()];
    both.sort_unstable();
    assert_eq!(listening_ports(with.id()), both);
    let line = with.wait_for_line("listening");
    let (address, page) = (with.address(), with.site.admin);
    assert!(line.contains(&format!("address=\"{address}\"")), "{line}");
    assert!(
        line.contains(&format!("live_page=\"http://{page}/\"")),
        "{line}"
    );
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
        // Any response must be the origin's.
        assert_eq!(client.answer().body, b"ok", "{head}");
    }
    assert_eq!(origin.arrivals().len(), 5);
}

/// Paths that tell something.
const READ: [&str; 6] = [
    "/",
    "/metrics",
    "/api/zones",
    "/api/config",
    "/api/zones/z/keys",
    "/api/headline",
];

/// The status of a GET, by this name of the gateway, and the body.
fn read_by(gateway: &Gateway, path: &str, host: &str) -> (u16, String) {
    let mut client = Client::connect(gateway.site.admin);
    client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    let answer = client.answer();
    (answer.status, answer.text())
}

#[test]
fn a_page_that_points_its_own_name_at_the_admin_port_reads_nothing() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1000r/s", "burst = 9");
    let gateway = Gateway::start(&file);
    for path in READ.into_iter().chain(["/api/live", "/nothing"]) {
        let (status, text) = read_by(&gateway, path, "evil.example:9090");
        assert_eq!(status, 421, "{path}");
        assert!(
            text.contains("evil.example") && text.contains("admin_hosts"),
            "{text}"
        );
    }
    gateway.wait_for_line("the admin port refuses a request for another host");
    let uname = rustix::system::uname();
    let own = uname.nodename().to_str().expect("a name").to_owned();
    for host in [
        "localhost:1",
        "127.0.0.1",
        "[::1]:9090",
        "192.0.2.7:9090",
        &own,
    ] {
        for path in READ {
            assert_eq!(read_by(&gateway, path, host).0, 200, "{host} {path}");
        }
    }
    // Probes ask by any name, and learn nothing else.
    for path in ["/healthz", "/readyz"] {
        assert_eq!(read_by(&gateway, path, "evil.example").0, 200, "{path}");
    }
    // What is not told cannot be changed either.
    let mut client = Client::connect(gateway.site.admin);
    client.send(b"POST /api/reload HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(client.answer().status, 421);

    gateway.site.write(&format!(
        "admin_hosts = [\"Drip.Internal\", \"drip:9090\"]\n{file}"
    ));
    gateway.wait_for_line("the changed file is in force");
    for host in ["drip.internal:9090", "drip", "DRIP.internal"] {
        assert_eq!(read_by(&gateway, "/metrics", host).0, 200, "{host}");
    }
    assert_eq!(read_by(&gateway, "/metrics", "evil.internal").0, 421);
}

/// The metrics that this version promises; `drip_store_*` exist only with a store.
const PROMISED: [&str; 46] = [
    "drip_zone_cancelled_after_seconds",
    "drip_connections",
    "drip_max_connections",
    "drip_descriptor_waits_total",
    "drip_local_port_waits_total",
    "drip_zone_untrusted_proxy",
    "drip_stderr_dropped_total",
    "drip_requests_total",
    "drip_zone_override",
    "drip_zone_overridden_keys",
    "drip_request_duration_seconds",
    "drip_zone_requests_total",
    "drip_zone_rejections_total",
    "drip_zone_queue_depth",
    "drip_zone_in_flight",
    "drip_zone_queue_depth_max",
    "drip_zone_queue_wait_seconds",
    "drip_zone_oldest_wait_seconds",
    "drip_zone_drain_lateness_seconds",
    "drip_zone_rate",
    "drip_zone_keys",
    "drip_zone_evictions_total",
    "drip_zone_top_key_queue_depth",
    "drip_origin_requests_total",
    "drip_origin_responses_total",
    "drip_origin_response_seconds",
    "drip_origin_in_flight",
    "drip_origin_oldest_request_seconds",
    "drip_origin_healthy",
    "drip_config_reloads_total",
    "drip_config_last_reload_successful",
    "drip_config_last_reload_success_timestamp_seconds",
    "drip_config_restart_needed",
    "drip_actor_restarts_total",
    "drip_log_dropped_total",
    "drip_buffers",
    "drip_build_info",
    "drip_gateway_info",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "process_start_time_seconds",
    "drip_zone_new_keys_total",
    "drip_zone_flooded_total",
    "drip_zone_max_keys",
];

#[test]
fn the_metrics_are_those_promised_and_each_says_what_it_means() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 2"));
    let _waiting: Vec<_> = (0..2)
        .map(|_| Client::ask(gateway.address(), "/?key=a"))
        .collect();
    gateway.wait_for_depth(1);
    origin.wait_for(1);
    eventually("the answer is counted", || {
        gateway
            .metrics()
            .value("drip_requests_total", &[])
            .is_some()
    });
    let answer = gateway.admin("/metrics").expect("an admin port");
    let kind = answer.field("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = answer.text();
    let mut found: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    for name in PROMISED {
        assert!(found.contains(&name), "no {name} in\n{text}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
        let series =
            |line: &str| line.starts_with(name) && line[name.len()..].starts_with(['{', ' ', '_']);
        assert!(text.lines().any(series), "no series of {name} in\n{text}");
    }
    found.retain(|name| name.starts_with("drip_") && !PROMISED.contains(name));
    assert_eq!(found, [""; 0], "not promised");
    let edges = text
        .lines()
        .filter(|line| line.starts_with("drip_zone_queue_wait_seconds_bucket"))
        .filter_map(|line| line.split("le=\"").nth(1)?.split('"').next());
    let wanted = "0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 1.5 2 2.5 3 4 5 7.5 10 25 60 +Inf";
    assert_eq!(edges.collect::<Vec<_>>().join(" "), wanted);
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(gateway.metrics().count("drip_build_info", &version), 1);
}

fn top_keys(gateway: &Gateway) -> Vec<String> {
    let metrics = gateway.metrics();
    let series = metrics.0.lines();
    let mut keys: Vec<_> = series
        .filter_map(|line| line.strip_prefix("drip_zone_top_key_queue_depth{zone=\"z\",key=\""))
        .map(str::to_owned)
        .collect();
    keys.sort_unstable();
    keys
}

#[test]
fn the_ten_deepest_keys_have_a_series_each_while_they_are() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/m", "burst = 9").replace("$arg_key", "$uri");
    let gateway = Gateway::start(&file);
    let mut clients = Vec::new();
    for nth in 0..11 {
        let deep = if nth == 0 { 2 } else { 3 };
        let ask = |_| Client::ask(gateway.address(), &format!("/k{nth:02}"));
        clients.push((0..deep).map(ask).collect::<Vec<_>>());
    }
    gateway.wait_for_depth(21);
    let keys = top_keys(&gateway);
    let expected: Vec<_> = (1..11).map(|nth| format!("/k{nth:02}\"}} 2")).collect();
    assert_eq!(keys, expected, "the eleventh waits alone");
    assert_eq!(gateway.zone("drip_zone_queue_depth_max"), 2);

    let oldest = || {
        let value = gateway
            .metrics()
            .value("drip_zone_oldest_wait_seconds", &[("zone", "z")]);
        value.expect("a series")
    };
    let before = oldest();
    std::thread::sleep(Duration::from_millis(100));
    assert!(oldest() >= before + 0.1);

    // When a client leaves, the next key takes its place; a key without waiting requests has no series.
    clients.pop();
    gateway.wait_for_depth(19);
    assert_eq!(top_keys(&gateway)[0], "/k00\"} 1");
    assert_eq!(top_keys(&gateway).len(), 10);
    clients.clear();
    gateway.wait_for_depth(0);
    assert_eq!(top_keys(&gateway), [""; 0]);
    assert!(oldest().abs() < 1e-9);
    assert_eq!(gateway.zone("drip_zone_queue_depth_max"), 0);

    // A key of any bytes stays on one line, and short.
    let long = "x".repeat(5_000);
    let odd = ["/%22%0A%5C%FF%3Cb%3E".to_owned(), format!("/{long}")];
    let _waiting: Vec<_> = odd
        .iter()
        .flat_map(|target| (0..2).map(|_| Client::ask(gateway.address(), target)))
        .collect();
    gateway.wait_for_depth(2);
    let cut = format!("/{}…\"}} 1", &long[..127]);
    assert_eq!(
        top_keys(&gateway),
        ["/\\\"\\\\x0A\\\\\\\\\\\\xFF<b>\"} 1", &cut]
    );
}

#[test]
fn the_series_of_what_left_the_file_go_with_it() {
    let (origin, other) = (Origin::start(), Origin::start());
    let file = one_zone(&origin, "10r/s", "burst = 2");
    let more = format!(
        "[zones.old]\nkey = \"$host\"\nrate = \"1r/s\"\n[origins.gone]\nservers = [\"http://{}\"]\n\
         [[routes]]\npath = \"/old\"\norigin = \"gone\"\nlimits = [{{ zone = \"old\", burst = 1 }}]\n",
        other.address
    );
    let gateway = Gateway::start(&format!("{file}{more}"));
    assert_eq!(fetch(gateway.address(), "/old").status, 200);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    let marks = ["zone=\"old\"", "origin=\"gone\"", "route=\"/old\""];
    let count = || {
        gateway
            .metrics()
            .count("drip_requests_total", &[("route", "/old"), ("code", "200")])
    };
    eventually("it is counted", || count() == 1);
    for mark in marks {
        assert!(gateway.metrics().0.contains(mark), "{mark}");
    }
    let waiting = Client::ask(gateway.address(), "/old");
    eventually("it waits", || {
        gateway
            .metrics()
            .count("drip_zone_queue_depth", &[("zone", "old")])
            == 1
    });
    gateway.site.write(&file);
    eventually("the file is read", || {
        gateway
            .metrics()
            .count("drip_config_reloads_total", &[("result", "success")])
            == 1
    });
    let left = [("zone", "old")];
    assert_eq!(
        gateway.metrics().count("drip_zone_queue_depth", &left),
        1,
        "one waits there yet"
    );
    drop(waiting);
    eventually("nothing is left", || {
        let text = gateway.metrics().0;
        marks.iter().all(|mark| !text.contains(mark))
    });
    assert_eq!(
        gateway.metrics().count(
            "drip_zone_requests_total",
            &[("zone", "z"), ("status", "passed")]
        ),
        1
    );

    // It comes back, and its counters begin anew.
    gateway.site.write(&format!("{file}{more}"));
    eventually("the zone is back", || {
        gateway.metrics().0.contains("zone=\"old\"")
    });
    assert_eq!(fetch(gateway.address(), "/old").status, 200);
    eventually("it is counted", || count() == 1);
    let passed = [("zone", "old"), ("status", "passed")];
    assert_eq!(
        gateway.metrics().count("drip_zone_requests_total", &passed),
        1
    );
}

#[test]
fn a_reload_hides_no_request_that_was_counted_before() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/h", "burst = 1");
    let gateway = Gateway::start(&file);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    // Keeps the settings alive that counted the others.
    let _waits = Client::ask(gateway.address(), "/?key=a");
    gateway.wait_for_depth(1);
    for _ in 0..5 {
        assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
    }
    let counted = |code| {
        let labels = [("route", "/"), ("code", code)];
        gateway.metrics().count("drip_requests_total", &labels)
    };
    gateway
        .site
        .write(&file.replace("rate = \"1r/h\"", "rate = \"2r/h\""));
    gateway.wait_for_line("the changed file is in force");
    assert_eq!((counted("200"), counted("429")), (1, 5));
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
    // A request is counted once its response is sent.
    eventually("it is counted", || counted("429") == 6);
}

#[test]
fn a_second_address_of_a_balancer_that_is_not_trusted_is_the_headline() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/s", "burst = 0").replace("$arg_key", "$remote_addr");
    assert!(file.contains("$remote_addr"), "{file}");
    let gateway = Gateway::start(&format!("trusted_proxies = [\"127.0.0.1\"]\n{file}"));
    let mut client = Client::connect(gateway.address());
    let mut nth = 0;
    eventually("the headline says so", || {
        nth += 1;
        // Its own checks name nobody.
        let named = match nth % 10 {
            0 => String::new(),
            _ => format!("X-Forwarded-For: 198.51.100.{}, 203.0.113.7\r\n", nth % 200),
        };
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{named}\r\n").as_bytes());
        client.answer();
        thread::sleep(Duration::from_millis(20));
        let headline = json(&gateway, "/api/headline")["headline"].to_string();
        headline.contains("add it to `server.trusted_proxies`")
            && headline.contains("behind 203.0.113.7")
    });
    let zone = [("zone", "z")];
    let there = gateway.metrics().value("drip_zone_untrusted_proxy", &zone);
    assert_eq!(there, Some(1.0));
}
