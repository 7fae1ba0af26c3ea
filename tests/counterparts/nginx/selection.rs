//! Which route of many nginx and drip find for a request, by its host and its path.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::SocketAddr;

use crate::programs::nginx::Nginx;
use crate::support::rng::Rng;
use crate::support::{Client, Exchange, Gateway, Origin};

const NAMES: [&str; 8] = [
    "a.test",
    "b.a.test",
    "c.test",
    "*.test",
    "*.a.test",
    "*.b.a.test",
    "*.c.test",
    "*.d.c.test",
];

/// The same locations of every server: nginx looks for the server first, drip for the path.
const PLACES: [(&str, &str); 6] = [
    ("/", "/"),
    ("/u/", "/u/"),
    ("/u/long/", "/u/long/"),
    ("= /u/exact", "= /u/exact"),
    ("~ ^/u/[0-9]+", "regex:^/u/[0-9]+"),
    ("~ x$", "regex:x$"),
];

const HOSTS: [&str; 16] = [
    "a.test",
    "A.Test:8080",
    "b.a.test",
    "x.b.a.test",
    "y.x.b.a.test",
    "x.a.test",
    "c.test",
    "c.test.",
    "x.c.test",
    "x.d.c.test",
    "d.c.test",
    "x.test",
    "xa.test",
    "test",
    "other.example",
    "127.0.0.1",
];

const TARGETS: [&str; 8] = [
    "/",
    "/u/",
    "/u/12",
    "/u/exact",
    "/u/long/12",
    "/u/long/x",
    "/x",
    "/u/%31?y",
];

fn place(to: SocketAddr, host: &str, target: &str) -> String {
    let mut client = Client::connect(to);
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    client.answer().text()
}

/// Files of both with the names in random groups, one for each server.
fn files(groups: &[Vec<&str>], origin: &Origin, address: SocketAddr) -> (String, String) {
    let (mut theirs, mut ours) = (String::new(), String::new());
    writeln!(
        ours,
        "[origins.app]\nservers = [\"http://{}\"]",
        origin.address
    )
    .expect("text");
    for (nth, names) in groups.iter().enumerate() {
        let (listen, names_field) = match &names[..] {
            [] => (format!("listen {address} default_server;"), String::new()),
            names => {
                let list: Vec<String> = names.iter().map(|it| format!("\"{it}\"")).collect();
                let list = list.join(", ");
                let host = if names.len() == 1 {
                    list
                } else {
                    format!("[{list}]")
                };
                let listen = format!("listen {address}; server_name {};", names.join(" "));
                (listen, format!("host = {host}\n"))
            }
        };
        writeln!(theirs, "server {{ {listen}").expect("text");
        for (at, (location, path)) in PLACES.iter().enumerate() {
            let field = format!("{nth}-{at}");
            writeln!(
                theirs,
                "location {location} {{ proxy_set_header X-Place {field}; proxy_pass http://origin; }}"
            )
            .expect("text");
            writeln!(
                ours,
                "[[routes]]\npath = '{path}'\norigin = \"app\"\n{names_field}request_headers = {{ x-place = \"{field}\" }}"
            )
            .expect("text");
        }
        theirs.push_str("}\n");
    }
    (theirs, ours)
}

#[test]
fn the_host_and_the_path_decide_as_in_nginx_whatever_the_order_of_the_file() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let name = exchange.field("x-place").unwrap_or_default().to_owned();
        exchange.reply(name.as_bytes())
    });
    let mut seen = BTreeSet::new();
    for seed in 0..6 {
        let mut rng = Rng::of(7, seed);
        // The first is the default server.
        let mut groups: Vec<Vec<&str>> = vec![Vec::new()];
        for name in NAMES {
            if rng.percent(20) {
                continue;
            }
            if rng.percent(50) && groups.len() > 1 {
                groups.last_mut().expect("a group").push(name);
            } else {
                groups.push(vec![name]);
            }
        }
        let at = usize::try_from(rng.within(0, groups.len() as u64)).expect("few");
        groups.swap(0, at);
        let mut ours = String::new();
        let nginx = Nginx::with_servers(&origin, |address| {
            let theirs;
            (theirs, ours) = files(&groups, &origin, address);
            theirs
        });
        let gateway = Gateway::start(&ours);
        for host in HOSTS {
            for target in TARGETS {
                let expected = place(nginx.address, host, target);
                let found = place(gateway.address(), host, target);
                assert_eq!(found, expected, "{host} {target}: {ours}");
                seen.insert((seed, found));
            }
        }
    }
    assert!(seen.len() > 60, "{seen:?}");
}
