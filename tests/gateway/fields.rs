//! The fields for TLS, sizes, servers and health, as `drip check` reads and prints them.

use std::fs;
use std::path::Path;

use rcgen::{CertificateParams, KeyPair};

use crate::gateway::check::{check, place, text};
use crate::support::{Client, Gateway, Site};

const ROUTE: &str = "[[routes]]\npath = \"/\"\norigin = \"app\"\n";

/// How a line may be written, and how it is printed; `@` is the folder of the file.
const LINES: [(&str, &str, &str); 20] = [
    ("server", "body_timeout = \"1500ms\"", ""),
    ("server", "tcp_keepalive = \"90s\"", ""),
    ("server", "tcp_keepalive = \"0s\"", "tcp_keepalive = \"0\""),
    ("origins.app", "body_timeout = \"90s\"", ""),
    (
        "origins.app",
        "tunnel_timeout = \"24h\"",
        "tunnel_timeout = \"1d\"",
    ),
    (
        "server",
        "max_header_size = 4096",
        "max_header_size = \"4KB\"",
    ),
    ("server", "max_body_size = \"10MB\"", ""),
    ("server", "max_body_size = 0", "max_body_size = \"0\""),
    (
        "server.tls",
        "cert = \"a.pem\"\nkey = \"@/k\"",
        "cert = \"@/a.pem\"\nkey = \"@/k\"",
    ),
    (
        "server.tls",
        "cert = [\"a.pem\", \"b.pem\"]\nkey = [\"k\", \"k\"]",
        "cert = [\"@/a.pem\", \"@/b.pem\"]\nkey = [\"@/k\", \"@/k\"]",
    ),
    ("origins.app", "max_header_size = \"1MB\"", ""),
    (
        "origins.app",
        "max_header_size = \"65536\"",
        "max_header_size = \"64KB\"",
    ),
    (
        "origins.app",
        "servers = [\"https://App\"]",
        "servers = [\"https://app:443\"]",
    ),
    ("origins.app", "servers = [\"https://10.0.0.1:8443\"]", ""),
    (
        "origins.app",
        "servers = [\"https://[::1]\"]",
        "servers = [\"https://[::1]:443\"]",
    ),
    (
        "origins.app",
        "servers = [\"http://app\"]",
        "servers = [\"http://app:80\"]",
    ),
    (
        "origins.app",
        "servers = [\"unix:app.sock\"]",
        "servers = [\"unix:@/app.sock\"]",
    ),
    (
        "origins.app",
        "servers = [\"unix:/run/app.sock\", \"http://a:1\"]",
        "",
    ),
    (
        "origins.app.health",
        "path = \"/healthz\"",
        "path = \"/healthz\"\ninterval = \"5s\"\ntimeout = \"1s\"\nunhealthy_after = 3\nhealthy_after = 1",
    ),
    (
        "origins.app.health",
        "path = \"/?a=1\"\ninterval = \"1s\"\ntimeout = \"2s\"\nunhealthy_after = 1\nhealthy_after = 2",
        "",
    ),
];

/// Two certificates of one key, `k`.
fn write_certificates(folder: &Path) {
    let key = KeyPair::generate().expect("a key");
    fs::write(folder.join("k"), key.serialize_pem()).expect("a file");
    for name in ["a", "b"] {
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let cert = params.self_signed(&key).expect("a certificate");
        fs::write(folder.join(format!("{name}.pem")), cert.pem()).expect("a file");
    }
}

#[test]
fn each_field_is_printed_so_that_it_reads_back() {
    let site = Site::new();
    let folder = site.folder().display().to_string();
    write_certificates(site.folder());
    for (table, written, printed) in LINES {
        let written = &*written.replace('@', &folder);
        let servers = if written.starts_with("servers") {
            written
        } else {
            "servers = [\"http://127.0.0.1:9000\"]"
        };
        let (more_app, more) = match table {
            "origins.app" if servers != written => (written, String::new()),
            "origins.app" => ("", String::new()),
            table => ("", format!("[{table}]\n{written}\n")),
        };
        let file = format!("[origins.app]\n{servers}\n{more_app}\n{more}{ROUTE}");
        fs::write(site.file(), &file).expect("a file");
        let first = check(&site.file());
        assert_eq!(
            first.status.code(),
            Some(0),
            "{file}{}",
            text(&first.stderr)
        );

        let shown = text(&first.stdout);
        let printed = if printed.is_empty() { written } else { printed };
        let printed = printed.replace('@', &folder);
        let (_, fields) = shown
            .split_once(&format!("[{table}]\n"))
            .expect("the table");
        let fields = fields.split("\n\n").next().unwrap_or_default();
        assert!(fields.contains(&printed), "{printed} is not in\n{shown}");

        fs::write(site.file(), &shown).expect("a file");
        assert_eq!(text(&check(&site.file()).stdout), shown);
    }
}

/// A file with an error in each of its fields.
const WRONG: &str = r#"[server]
body_timeout = "0s"
max_header_size = "512B"
max_body_size = "10mb"

[server.tls]
cert = ["a.pem", "b.pem"]
key = ["a.key"]

[origins.a]
servers = ["https://a/", "unix:", "http://unix:/run/a.sock"]
max_header_size = "2MB"
health = { interval = "5" }

[origins.a-b.health]
path = "up"
timeout = "0"
unhealthy_after = -1
healthy_after = 0

[[routes]]
path = "/"
origin = "a"
"#;
const PROBLEMS: [(&str, &str); 15] = [
    ("\"0s\"", "body_timeout: expected a duration above 0"),
    (
        "\"512B\"",
        "max_header_size: expected a size from 1KB to 1MB",
    ),
    (
        "\"10mb\"",
        "max_body_size: expected a whole number and a unit of 1024s (GB, MB, KB, B)",
    ),
    (
        "[\"a.key\"]",
        "key: each file in cert needs its key here, in the same order; found 2 in cert and 1 here",
    ),
    (
        "\"https://a/\"",
        "servers: a server is written \"http://host:port\", \"https://host:port\" or \"h2c://host:port\", with no path",
    ),
    (
        "\"unix:\"",
        "servers: a socket file is written \"unix:/run/app.sock\"",
    ),
    (
        "\"http://unix:",
        "servers: a socket file is written \"unix:/run/app.sock\", without http://",
    ),
    (
        "\"2MB\"",
        "max_header_size: expected a size from 1KB to 1MB",
    ),
    (
        "{ interval",
        "health: it has no path to ask for; add path = \"/healthz\"",
    ),
    ("\"5\" }", "interval: expected a whole number and a unit"),
    ("a-b.health]", "[origins.a-b] has no servers"),
    ("\"up\"", "path: a path begins with /"),
    ("\"0\"\n", "timeout: expected a duration above 0"),
    ("-1", "unhealthy_after: expected a whole number from 1"),
    (
        "0\n\n[[routes]]",
        "healthy_after: expected a whole number from 1",
    ),
];

#[test]
fn everything_wrong_with_them_is_told_with_its_place() {
    let site = Site::new();
    fs::write(site.file(), WRONG).expect("a file");
    let output = check(&site.file());
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    let mut lines = told.lines();
    for (part, message) in PROBLEMS {
        let place = place(WRONG, part);
        let begin = format!("{}:{place}: {message}", site.file().display());
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(&begin), "{begin}\n{told}");
    }
    assert_eq!(lines.next(), None, "{told}");
}

#[test]
fn an_https_or_unix_server_that_is_not_there_is_unreachable() {
    for server in ["https://127.0.0.1:1", "unix:app.sock"] {
        let gateway = Gateway::start(&format!("[origins.app]\nservers = [{server:?}]\n{ROUTE}"));
        let mut client = Client::ask(gateway.address(), "/");
        assert_eq!(client.answer().status, 502, "{server}");
    }
}
