//! The fields for tunnels, pauses in responses and TCP keepalive, as `drip check` reads and prints
//! them.

use std::fs;

use crate::gateway::check::{check, place, text};
use crate::support::Site;

/// How a line may be written, and how it is printed; an empty line means the default.
const LINES: [(&str, &str, &str); 8] = [
    (
        "server",
        "tcp_keepalive = \"25s\"",
        "tcp_keepalive = \"25s\"",
    ),
    (
        "server",
        "tcp_keepalive = \"120s\"",
        "tcp_keepalive = \"2m\"",
    ),
    ("server", "", "tcp_keepalive = \"1m\""),
    (
        "origins.app",
        "tunnel_timeout = \"90s\"",
        "tunnel_timeout = \"90s\"",
    ),
    (
        "origins.app",
        "tunnel_timeout = \"60m\"",
        "tunnel_timeout = \"1h\"",
    ),
    ("origins.app", "", "tunnel_timeout = \"1h\""),
    (
        "origins.app",
        "body_timeout = \"1500ms\"",
        "body_timeout = \"1500ms\"",
    ),
    ("origins.app", "", "body_timeout = \""),
];

/// A file with a line of `[server]` and one of the origin.
fn file(server: &str, origin: &str) -> String {
    format!(
        "[server]\n{server}\n[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n{origin}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n"
    )
}

#[test]
fn they_are_printed_so_that_they_read_back() {
    let site = Site::new();
    for (table, written, printed) in LINES {
        let (server, origin) = if table == "server" {
            (written, "")
        } else {
            ("", written)
        };
        let file = file(server, origin);
        fs::write(site.file(), &file).expect("a file");
        let first = check(&site.file());
        assert_eq!(
            first.status.code(),
            Some(0),
            "{file}{}",
            text(&first.stderr)
        );
        let shown = text(&first.stdout);
        let of_table = shown.split_once(&format!("[{table}]\n"));
        let (_, fields) = of_table.expect("the table");
        let fields = fields.split("\n\n").next().unwrap_or_default();
        assert!(fields.contains(printed), "{printed} is not in\n{shown}");
        fs::write(site.file(), &shown).expect("a file");
        assert_eq!(text(&check(&site.file()).stdout), shown);
    }
}

#[test]
fn what_is_no_duration_is_told_with_its_place() {
    let site = Site::new();
    for name in ["tcp_keepalive", "tunnel_timeout", "body_timeout"] {
        for value in ["\"5\"", "\"-1s\"", "5", "\"soon\""] {
            let line = format!("{name} = {value}");
            let wrong = if name == "tcp_keepalive" {
                file(&line, "")
            } else {
                file("", &line)
            };
            fs::write(site.file(), &wrong).expect("a file");
            let output = check(&site.file());
            assert_eq!(output.status.code(), Some(1), "{line}");
            let told = text(&output.stderr);
            let place = place(&wrong, value);
            let begin = format!("{}:{place}: {name}: ", site.file().display());
            assert!(told.starts_with(&begin), "{begin}\n{told}");
        }
    }
}
