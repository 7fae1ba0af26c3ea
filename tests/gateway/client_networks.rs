//! Tests of routes that allow or deny clients by their networks.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;

use crate::gateway::check::{self, check};
use crate::support::{
    Gateway, Origin, assert_contains, eventually, fetch, fetch_with, over_unix, whole_lines,
};

/// Returns the status for a client with this address, behind a trusted proxy.
fn status(to: SocketAddr, client: &str, target: &str) -> u16 {
    fetch_with(to, target, &format!("X-Forwarded-For: {client}\r\n")).status
}

fn text(origin: &Origin, route: &str) -> String {
    format!(
        "trusted_proxies = [\"127.0.0.1\"]\n[log]\naccess = \"access.log\"\nformat = \"json\"\n\
         [origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/h\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 0 }}]\n{route}",
        origin.address
    )
}

#[test]
fn a_client_that_may_not_come_gets_403_and_costs_its_limits_nothing() {
    let origin = Origin::start();
    let rules = "allow = [\"10.0.0.0/8\", \"2001:db8::/32\"]\ndeny = [\"10.9.0.0/16\"]\nanswer_headers = { x-own = \"1\" }\n";
    let gateway = Gateway::start(&text(&origin, rules));
    let to = gateway.address();
    for _ in 0..3 {
        assert_eq!(status(to, "10.9.1.1", "/"), 403);
        assert_eq!(status(to, "192.0.2.1", "/"), 403);
    }
    assert_eq!(status(to, "10.8.1.1", "/"), 200);
    assert_eq!(status(to, "10.8.1.1", "/"), 429);
    assert_eq!(status(to, "2001:db8::1", "/"), 200);
    // Without the field the peer is the client.
    let answer = fetch(to, "/");
    assert_eq!((answer.status, answer.text()), (403, "Forbidden\n".into()));
    assert_eq!(answer.field("x-own"), Some("1"));
    assert_eq!(origin.arrivals().len(), 2);
    let metrics = gateway.metrics();
    assert_eq!(metrics.count("drip_refused_total", &[("route", "/")]), 7);
    let of_zone = |status| {
        let labels = [("zone", "z"), ("status", status)];
        metrics.count("drip_zone_requests_total", &labels)
    };
    assert_eq!((of_zone("passed"), of_zone("rejected")), (2, 1));
    let log = gateway.site.folder().join("access.log");
    eventually("all requests are logged", || {
        let lines = whole_lines(&log);
        let refused = lines
            .lines()
            .filter(|line| line.contains("\"refused\":true"));
        refused.count() == 7 && lines.lines().count() == 10
    });
}

#[test]
fn a_client_on_a_socket_file_is_in_no_network() {
    let origin = Origin::start();
    for (rules, expected) in [
        ("deny = [\"0.0.0.0/0\", \"::/0\"]\n", "HTTP/1.0 200"),
        ("allow = [\"0.0.0.0/0\", \"::/0\"]\n", "HTTP/1.0 403"),
    ] {
        let (_gateway, socket) = Gateway::start_with_unix_socket(&text(&origin, rules));
        let answer = over_unix(&socket, "GET / HTTP/1.0\r\nHost: a\r\n\r\n");
        assert!(answer.starts_with(expected), "{rules}: {answer}");
    }
}

#[test]
fn a_file_of_networks_is_read_again_when_it_changes_and_kept_while_it_is_wrong() {
    let origin = Origin::start();
    let mut many = String::from("# partners\n\n");
    for nth in 0..100_000u32 {
        let [_, b, c, d] = (nth * 16).to_be_bytes();
        writeln!(many, "100.{b}.{c}.{d}/30").expect("text");
    }
    let rules = text(&origin, "allow = { file = \"partners.txt\" }\n");
    let gateway = Gateway::start_beside(&[("partners.txt", &many)], &rules);
    let partners = gateway.site.folder().join("partners.txt");
    let write = |text: &str| fs::write(&partners, text).expect("a file");
    let is_let_in = |client: &str| match status(gateway.address(), client, "/") {
        200 | 429 => true,
        403 => false,
        other => panic!("{other}"),
    };
    for (client, expected) in [
        ("100.0.0.0", true),
        ("100.0.0.3", true),
        ("100.0.0.4", false),
        ("100.24.105.243", true),
        ("100.24.105.244", false),
        ("192.0.2.1", false),
    ] {
        assert_eq!(is_let_in(client), expected, "{client}");
    }
    write("\u{feff}192.0.2.0/24 # since May\r\n");
    eventually("the new file is in force", || is_let_in("192.0.2.1"));
    assert!(!is_let_in("100.0.0.0"));
    gateway.wait_for_line("networks file partners.txt content changed");

    write("192.0.2.0/24\n10.0.0.0/33\n");
    let line = gateway.wait_for_line("partners.txt, line 2");
    assert_contains!(line, "10.0.0.0/33");
    assert!(is_let_in("192.0.2.1"));
    let checked = check(&gateway.site.file());
    let received = check::text(&checked.stderr);
    assert!(!checked.status.success(), "{received}");
    assert_contains!(received, "partners.txt, line 2");
    // A missing file must neither admit everyone nor stop the gateway.
    fs::remove_file(&partners).expect("a file");
    gateway.wait_for_line("cannot be read");
    assert!(is_let_in("192.0.2.1") && !is_let_in("100.0.0.0"));
    // An empty list is valid, and perhaps a mistake.
    write("# nobody\n");
    gateway.wait_for_line("partners.txt has no network, so this list names no client");
    eventually("no client is let in", || !is_let_in("192.0.2.1"));
}

#[test]
fn a_file_of_trusted_proxies_is_read_again_when_it_changes() {
    let origin = Origin::start();
    let of_file = "trusted_proxies = { file = \"proxies.txt\" }";
    let rules = text(&origin, "allow = [\"10.0.0.0/8\"]\n");
    let rules = rules.replace("trusted_proxies = [\"127.0.0.1\"]", of_file);
    let gateway = Gateway::start_beside(&[("proxies.txt", "192.0.2.0/24\nunix:\n")], &rules);
    let proxies = gateway.site.folder().join("proxies.txt");
    let write = |text: &str| fs::write(&proxies, text).expect("a file");
    let is_believed = || status(gateway.address(), "10.0.0.1", "/") != 403;
    assert!(!is_believed());
    write("# all of this host\n127.0.0.0/8\n");
    eventually("the new file is in force", is_believed);
    gateway.wait_for_line("networks file proxies.txt content changed");
    write("unix\n");
    let line = gateway.wait_for_line("proxies.txt, line 1");
    assert_contains!(line, "socket files");
    assert!(is_believed());
    write("192.0.2.1\n");
    eventually("it is back", || !is_believed());
}
