//! Clients that a route lets in or not, by their networks.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use crate::support::{Client, Gateway, Origin, Site, drip, eventually, fetch, whole_lines};

/// The status for a client with this address, behind a trusted proxy.
fn status(to: SocketAddr, client: &str, target: &str) -> u16 {
    let mut connection = Client::connect(to);
    let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n");
    connection.send(head.as_bytes());
    connection.answer().status
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
    for (rules, expected) in [
        ("deny = [\"0.0.0.0/0\", \"::/0\"]\n", "HTTP/1.1 200"),
        ("allow = [\"0.0.0.0/0\", \"::/0\"]\n", "HTTP/1.1 403"),
    ] {
        let origin = Origin::start();
        let (_gateway, socket) = Gateway::start_with_unix_socket(&text(&origin, rules));
        let mut stream = UnixStream::connect(socket).expect("a connection");
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with(expected), "{rules}: {answer}");
    }
}

#[test]
fn a_file_of_networks_is_read_again_when_it_changes_and_kept_while_it_is_wrong() {
    let origin = Origin::start();
    let site = Site::new();
    let partners = site.folder().join("partners.txt");
    let mut many = String::from("# partners\n\n");
    for nth in 0..100_000u32 {
        let [_, b, c, d] = (nth * 16).to_be_bytes();
        writeln!(many, "100.{b}.{c}.{d}/30").expect("text");
    }
    std::fs::write(&partners, &many).expect("a file");
    site.write(&text(&origin, "allow = { file = \"partners.txt\" }\n"));
    let gateway = Gateway::run(site);
    gateway.wait_until_ready();
    let to = gateway.address();
    let is_let_in = |client: &str| match status(to, client, "/") {
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
    std::fs::write(&partners, "\u{feff}192.0.2.0/24 # since May\r\n").expect("a file");
    eventually("the new file is in force", || is_let_in("192.0.2.1"));
    assert!(!is_let_in("100.0.0.0"));
    gateway.wait_for_line("networks file partners.txt content changed");

    std::fs::write(&partners, "192.0.2.0/24\n10.0.0.0/33\n").expect("a file");
    let line = gateway.wait_for_line("partners.txt, line 2");
    assert!(line.contains("10.0.0.0/33"), "{line}");
    assert!(is_let_in("192.0.2.1"));
    let checked = drip()
        .args(["check", "--config"])
        .arg(gateway.site.file())
        .stdout(Stdio::piped())
        .output()
        .expect("drip");
    let told = String::from_utf8_lossy(&checked.stdout).into_owned()
        + &String::from_utf8_lossy(&checked.stderr);
    assert!(
        !checked.status.success() && told.contains("partners.txt, line 2"),
        "{told}"
    );
    // A file that is gone is no reason to let everyone in, nor to stop.
    std::fs::remove_file(&partners).expect("a file");
    gateway.wait_for_line("cannot be read");
    assert!(is_let_in("192.0.2.1") && !is_let_in("100.0.0.0"));
    // An empty list is right, and perhaps a mistake.
    std::fs::write(&partners, "# nobody\n").expect("a file");
    gateway.wait_for_line("partners.txt has no network, so this list names no client");
    eventually("nobody is let in", || !is_let_in("192.0.2.1"));
}

#[test]
fn a_file_of_trusted_proxies_is_read_again_when_it_changes() {
    let origin = Origin::start();
    let site = Site::new();
    let proxies = site.folder().join("proxies.txt");
    std::fs::write(&proxies, "192.0.2.0/24\nunix:\n").expect("a file");
    let of_file = "trusted_proxies = { file = \"proxies.txt\" }";
    let file = text(&origin, "allow = [\"10.0.0.0/8\"]\n");
    site.write(&file.replace("trusted_proxies = [\"127.0.0.1\"]", of_file));
    let gateway = Gateway::run(site);
    gateway.wait_until_ready();
    let to = gateway.address();
    let is_believed = || status(to, "10.0.0.1", "/") != 403;
    assert!(!is_believed());
    std::fs::write(&proxies, "# all of this host\n127.0.0.0/8\n").expect("a file");
    eventually("the new file is in force", is_believed);
    gateway.wait_for_line("networks file proxies.txt content changed");
    std::fs::write(&proxies, "unix\n").expect("a file");
    let line = gateway.wait_for_line("proxies.txt, line 1");
    assert!(line.contains("socket files"), "{line}");
    assert!(is_believed());
    std::fs::remove_file(&proxies).expect("a file");
    gateway.wait_for_line("cannot be read");
    assert!(is_believed());
    std::fs::write(&proxies, "192.0.2.1\n").expect("a file");
    eventually("it is back", || !is_believed());
}
