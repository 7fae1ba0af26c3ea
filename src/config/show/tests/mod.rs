use std::path::Path;

use super::*;
use crate::{Listen, ListenAddress, ListenService, Route, parse};

/// A file with every field.
const EVERYTHING: &str = include_str!("everything.toml");
/// How it is shown.
const SHOWN: &str = include_str!("shown.toml");

#[test]
fn what_is_shown_reads_back_as_the_same_settings() {
    let settings = parse(EVERYTHING, Path::new("/etc/drip/gateway.toml"), true).unwrap();
    assert_eq!(show(&settings), SHOWN);
    let again = parse(SHOWN, Path::new("/elsewhere/gateway.toml"), true).unwrap();
    let warnings = settings.warnings.clone();
    assert_eq!(Settings { warnings, ..again }, settings);
}

#[test]
fn an_origin_that_gateways_share_is_shown_and_reads_back() {
    let text = r#"
[origins.app]
servers = ["http://127.0.0.1:9000"]
rate = "200r/s"
store = "redis"
gateways = 3

[[routes]]
path = "/"
origin = "app"
"#;
    let read = |text: &str| parse(text, Path::new("/etc/drip/gateway.toml"), true).unwrap();
    let settings = read(text);
    let shown = show(&settings);
    assert!(
        shown.contains("rate = \"200r/s\"\nstore = \"redis\"\ngateways = 3\n"),
        "{shown}"
    );
    assert_eq!(read(&shown), settings);
}

#[test]
fn defaults_are_shown_and_read_back() {
    let text = include_str!("../../../../gateway.toml");
    let settings = parse(text, Path::new("gateway.toml"), false).unwrap();
    let shown = show(&settings);
    assert_eq!(
        parse(&shown, Path::new("gateway.toml"), false),
        Ok(settings.clone())
    );

    let server = &settings.server;
    let cores = std::thread::available_parallelism().unwrap();
    assert_eq!(
        server.listen,
        [Listen {
            address: ListenAddress::Tcp("127.0.0.1:8080".parse().unwrap()),
            service: ListenService::Plain,
            client_auth: None,
            name: None,
        }]
    );
    assert_eq!(server.admin, Some("127.0.0.1:9090".parse().unwrap()));
    assert_eq!(server.workers, cores);
    for line in [
        "forwarded_header = \"x-forwarded-for\"",
        "max_connections = 25000",
        "max_concurrent_streams = 128",
        "hold_streams = true",
        "underscores_in_headers = false",
        "keep_alive = \"75s\"",
        "keep_alive_time = \"0\"",
        "keep_alive_requests = 0",
        "tcp_keepalive = \"1m\"",
        "header_timeout = \"10s\"",
        "body_timeout = \"30s\"",
        "min_body_rate = \"8KB/30s\"",
        "max_header_size = \"32KB\"",
        "max_body_size = \"0\"",
        "shutdown_timeout = \"30s\"",
        "body_timeout = \"5m\"",
        "tunnel_timeout = \"1h\"",
        "max_header_size = \"64KB\"",
        "level = \"info\"",
        "format = \"text\"",
        "access = \"off\"",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}");
    }
    for absent in ["tls", "health"] {
        assert!(!shown.contains(absent), "{absent}");
    }
}

#[test]
fn one_certificate_is_shown_without_a_list() {
    let text = include_str!("../../../../gateway.toml");
    let text = format!("{text}\n[server.tls]\ncert = [\"a.pem\"]\nkey = \"a.key\"\n");
    let settings = parse(&text, Path::new("/etc/drip/gateway.toml"), true).unwrap();
    let shown = show(&settings);
    let tls = "[server.tls]\ncert = \"/etc/drip/a.pem\"\nkey = \"/etc/drip/a.key\"\n";
    assert!(shown.contains(tls), "{shown}");
    let again = parse(&shown, Path::new("/elsewhere/gateway.toml"), true);
    assert_eq!(again, Ok(settings));
}

#[test]
fn routes_are_named_and_matched_byte_by_byte() {
    let settings = parse(SHOWN, Path::new("gateway.toml"), true).unwrap();
    let names = settings.routes.iter().map(Route::name).collect::<Vec<_>>();
    assert_eq!(
        names,
        [
            "api.example.com = /login",
            "regex:^/v1/\\d+\"$",
            "/private/",
            "/",
            "/three",
            "/four",
            "/five"
        ]
    );
    let exact = &settings.routes[0].path;
    assert!(exact.matches(b"/login") && !exact.matches(b"/login/") && !exact.matches(b"/Login"));
    let prefix = crate::PathPattern::Prefix("/fast".to_owned());
    assert!(prefix.matches(b"/fast") && prefix.matches(b"/fast.html") && !prefix.matches(b"/fas"));
}
