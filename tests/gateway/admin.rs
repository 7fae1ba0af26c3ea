//! Tests of the admin port.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::support::{
    Gateway, Origin, Site, all_pass, assert_contains, eventually, exchange, one_zone, start_limited,
};

/// Returns the ports on which the process listens, over IPv4 and IPv6.
fn listening_ports(process: u32) -> Vec<u16> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).expect("a process");
    let open: Vec<_> = open
        .filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
        .collect();
    let table = |name| fs::read_to_string(format!("/proc/{process}/net/{name}")).ok();
    let tables: String = ["tcp", "tcp6"].into_iter().filter_map(table).collect();
    let port = |line: &str| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let socket = format!("socket:[{}]", columns[9]);
        let listens = columns[3] == "0A" && open.contains(&PathBuf::from(socket));
        let (_, port) = columns[1].rsplit_once(':').filter(|_| listens)?;
        u16::from_str_radix(port, 16).ok()
    };
    let mut ports: Vec<u16> = tables.lines().filter_map(port).collect();
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
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    assert_eq!(listening_ports(gateway.id()), [gateway.address().port()]);

    let with = Gateway::start(&file);
    let mut both = [with.address().port(), with.site.admin.port()];
    both.sort_unstable();
    assert_eq!(listening_ports(with.id()), both);
    let line = with.wait_for_line("listening");
    let (address, page) = (with.address(), with.site.admin);
    assert_contains!(line, &format!("address=\"{address}\""));
    assert_contains!(line, &format!("live_page=\"http://{page}/\""));
}

#[test]
fn the_admin_port_is_not_reached_through_the_traffic_port() {
    let (origin, gateway) = start_limited("1000r/s", "burst = 9");
    let admin = gateway.site.admin;
    for head in [
        "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(),
        format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\n\r\n"),
        format!("GET http://{admin}/metrics HTTP/1.1\r\nHost: {admin}\r\n\r\n"),
        "GET /readyz HTTP/1.1\r\nHost: localhost:9090\r\n\r\n".to_owned(),
        "POST /api/reload HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n".to_owned(),
    ] {
        let mut client = gateway.connect();
        client.send(&head);
        // Any response must be the origin's.
        assert_eq!(client.answer().body, b"ok", "{head}");
    }
    assert_eq!(origin.arrivals().len(), 5);
}

/// Paths that report data.
const READ: &str = "/ /metrics /api/zones /api/config /api/zones/z/keys /api/headline";

/// Requests a path under this host name of the gateway. Returns status and body.
fn read_by(gateway: &Gateway, path: &str, host: &str) -> (u16, String) {
    let answer = exchange(
        gateway.site.admin,
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    );
    (answer.status, answer.text())
}

#[test]
fn a_page_that_points_its_own_name_at_the_admin_port_reads_nothing() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1000r/s", "burst = 9");
    let gateway = Gateway::start(&file);
    for path in READ.split(' ').chain(["/api/live", "/nothing"]) {
        let (status, text) = read_by(&gateway, path, "evil.example:9090");
        assert_eq!(status, 421, "{path}");
        assert_contains!(text, "evil.example", "admin_hosts");
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
        for path in READ.split(' ') {
            assert_eq!(read_by(&gateway, path, host).0, 200, "{host} {path}");
        }
    }
    // Probes may use any name, and learn nothing else.
    for path in ["/healthz", "/readyz"] {
        assert_eq!(read_by(&gateway, path, "evil.example").0, 200, "{path}");
    }
    // A client that may not read may not change anything, either.
    let reload = "POST /api/reload HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(exchange(gateway.site.admin, reload).status, 421);

    gateway.site.write(&format!(
        "admin_hosts = [\"Drip.Internal\", \"drip:9090\"]\n{file}"
    ));
    gateway.wait_for_line("the changed file is in force");
    for host in ["drip.internal:9090", "drip", "DRIP.internal"] {
        assert_eq!(read_by(&gateway, "/metrics", host).0, 200, "{host}");
    }
    assert_eq!(read_by(&gateway, "/metrics", "evil.internal").0, 421);
}

/// The metrics that this version promises. `drip_store_*` exist only with a store.
const PROMISED: &str = "drip_actor_restarts_total drip_buffers drip_build_info \
    drip_config_last_reload_success_timestamp_seconds drip_config_last_reload_successful \
    drip_config_reloads_total drip_config_restart_needed drip_connections drip_descriptor_waits_total \
    drip_gateway_info drip_local_port_waits_total drip_log_dropped_total drip_max_connections \
    drip_origin_healthy drip_origin_in_flight drip_origin_oldest_request_seconds \
    drip_origin_requests_total drip_origin_response_seconds drip_origin_responses_total \
    drip_request_duration_seconds drip_requests_total drip_stderr_dropped_total \
    drip_zone_cancelled_after_seconds drip_zone_drain_lateness_seconds drip_zone_evictions_total \
    drip_zone_flooded_total drip_zone_in_flight drip_zone_keys drip_zone_max_keys \
    drip_zone_new_keys_total drip_zone_oldest_wait_seconds drip_zone_overridden_keys drip_zone_override \
    drip_zone_queue_depth drip_zone_queue_depth_max drip_zone_queue_wait_seconds drip_zone_rate \
    drip_zone_rejections_total drip_zone_requests_total drip_zone_top_key_queue_depth \
    drip_zone_untrusted_proxy process_cpu_seconds_total process_max_fds process_open_fds \
    process_resident_memory_bytes process_start_time_seconds";

#[test]
fn the_metrics_are_those_promised_and_show_what_became_of_the_requests() {
    let (_origin, gateway) = start_limited("1r/s", "burst = 2");
    let mut clients = [(); 3].map(|()| gateway.ask("/?key=a"));
    gateway.wait_for_depth(2);
    assert_eq!(gateway.fetch("/?key=a").status, 429);
    let requests = |code| gateway.requests("/", code);
    eventually("the answers are counted", || {
        (requests("200"), requests("429")) == (1, 1)
    });
    let answer = gateway.admin("/metrics").expect("an admin port");
    let kind = answer.field("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = answer.text();
    let types = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let mut found: Vec<_> = types.collect();
    let promised: Vec<_> = PROMISED.split_whitespace().collect();
    for name in &promised {
        assert!(found.contains(name), "no {name} in\n{text}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
        let series = |line: &str| {
            let labels = line.strip_prefix(name);
            labels.is_some_and(|it| it.starts_with(['{', ' ', '_']))
        };
        assert!(text.lines().any(series), "no series of {name} in\n{text}");
    }
    found.retain(|name| name.starts_with("drip_") && !promised.contains(name));
    assert_eq!(found, [""; 0], "not promised");
    let edges = text
        .lines()
        .filter(|line| line.starts_with("drip_zone_queue_wait_seconds_bucket"))
        .filter_map(|line| line.split("le=\"").nth(1)?.split('"').next());
    let requested = "0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 1.5 2 2.5 3 4 5 7.5 10 25 60 +Inf";
    assert_eq!(edges.collect::<Vec<_>>().join(" "), requested);

    all_pass(&mut clients);
    gateway.wait_for_depth(0);
    eventually("the answers are counted", || requests("200") == 3);
    let metrics = gateway.metrics();
    let zone = |name, label, value| metrics.count(name, &[("zone", "z"), (label, value)]);
    for (status, count) in [("passed", 1), ("delayed", 2), ("rejected", 1)] {
        let counted = zone("drip_zone_requests_total", "status", status);
        assert_eq!(counted, count, "{status}");
    }
    assert_eq!(zone("drip_zone_rejections_total", "reason", "burst"), 1);
    for (edge, count) in [("0.5", 0), ("5", 2), ("+Inf", 2)] {
        let counted = zone("drip_zone_queue_wait_seconds_bucket", "le", edge);
        assert_eq!(counted, count, "{edge}");
    }
    let waited = metrics.value("drip_zone_queue_wait_seconds_sum", &[("zone", "z")]);
    let waited = waited.expect("a sum");
    assert!((2.5..3.5).contains(&waited), "1 and 2 s, not {waited}");
    assert_eq!(zone("drip_zone_rate", "zone", "z"), 1);
    assert_eq!(metrics.count("drip_config_last_reload_successful", &[]), 1);
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(metrics.count("drip_build_info", &version), 1);
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
        let ask = |_| gateway.ask(&format!("/k{nth:02}"));
        clients.push((0..deep).map(ask).collect::<Vec<_>>());
    }
    gateway.wait_for_depth(21);
    let expected: Vec<_> = (1..11).map(|nth| format!("/k{nth:02}\"}} 2")).collect();
    assert_eq!(top_keys(&gateway), expected, "the eleventh waits alone");
    assert_eq!(gateway.zone("drip_zone_queue_depth_max"), 2);

    let oldest = || {
        let value = gateway.value("drip_zone_oldest_wait_seconds", &[("zone", "z")]);
        value.expect("a series")
    };
    let before = oldest();
    thread::sleep(Duration::from_millis(100));
    assert!(oldest() >= before + 0.1);

    // When a client disconnects, the next key replaces it. A key without waiting requests has no
    // series.
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
    let odd = ["/%22%0A%5C%FF%3Cb%3E", &format!("/{long}")];
    let _waiting = odd.map(|target| [(); 2].map(|()| gateway.ask(target)));
    gateway.wait_for_depth(2);
    let cut = format!("/{}…\"}} 1", &long[..127]);
    let odd = "/\\\"\\\\x0A\\\\\\\\\\\\xFF<b>\"} 1";
    assert_eq!(top_keys(&gateway), [odd, &cut]);
}

#[test]
fn the_series_of_what_left_the_file_go_with_it() {
    let (origin, other) = (Origin::start(), Origin::start());
    let file = one_zone(&origin, "10r/s", "burst = 2");
    let more = format!(
        "[zones.old]\nkey = \"$host\"\nrate = \"1r/m\"\n[origins.gone]\nservers = [\"http://{}\"]\n\
         [[routes]]\npath = \"/old\"\norigin = \"gone\"\nlimits = [{{ zone = \"old\", burst = 1 }}]\n",
        other.address
    );
    let gateway = Gateway::start(&format!("{file}{more}"));
    assert_eq!(gateway.fetch("/old").status, 200);
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    let marks = ["zone=\"old\"", "origin=\"gone\"", "route=\"/old\""];
    let is_counted = || gateway.requests("/old", "200") == 1;
    eventually("it is counted", is_counted);
    for mark in marks {
        assert!(gateway.metrics().0.contains(mark), "{mark}");
    }
    let depth = || gateway.count("drip_zone_queue_depth", &[("zone", "old")]);
    let waiting = gateway.ask("/old");
    eventually("it waits", || depth() == 1);
    gateway.site.write(&file);
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(depth(), 1, "one waits there yet");
    drop(waiting);
    eventually("nothing is left", || {
        let text = gateway.metrics().0;
        marks.iter().all(|mark| !text.contains(mark))
    });
    let passed = |zone| gateway.zone_requests(zone, "passed");
    assert_eq!(passed("z"), 1);

    // The route returns, and its counters start at zero.
    gateway.site.write(&format!("{file}{more}"));
    eventually("the zone is back", || {
        gateway.metrics().0.contains("zone=\"old\"")
    });
    assert_eq!(gateway.fetch("/old").status, 200);
    eventually("it is counted", is_counted);
    assert_eq!(passed("old"), 1);
}

#[test]
fn a_reload_hides_no_request_that_was_counted_before() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/h", "burst = 1");
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    // A waiting request keeps the old settings and their counters alive.
    let _waits = gateway.ask("/?key=a");
    gateway.wait_for_depth(1);
    gateway.check_each(5, "/?key=a", 429);
    let counted = |code| gateway.requests("/", code);
    gateway.site.write(&file.replace("1r/h", "2r/h"));
    gateway.wait_for_line("the changed file is in force");
    assert_eq!((counted("200"), counted("429")), (1, 5));
    assert_eq!(gateway.fetch("/?key=a").status, 429);
    // A request is counted once its response is sent.
    eventually("it is counted", || counted("429") == 6);
}
