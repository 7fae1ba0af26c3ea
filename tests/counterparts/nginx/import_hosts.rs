//! Which location nginx finds among servers with wildcards, and drip on what `drip import` makes of them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::SocketAddr;

use super::import::drip_on_the_file_of;
use crate::programs::nginx::Nginx;
use crate::support::rng::Rng;
use crate::support::{Client, Exchange, Origin};

const NAMES: [&str; 7] = [
    "a.test",
    "b.a.test",
    "*.test",
    "*.a.test",
    "*.b.a.test",
    ".c.test",
    "*.d.c.test",
];

const PLACES: [&str; 7] = [
    "/",
    "/u/",
    "/u/long/",
    "= /u/exact",
    "= /u/long/exact",
    "~ ^/u/[0-9]+",
    "~ x$",
];

const HOSTS: [&str; 14] = [
    "a.test",
    "A.Test:8080",
    "b.a.test",
    "x.b.a.test",
    "y.x.b.a.test",
    "x.a.test",
    "c.test",
    "x.c.test",
    "x.d.c.test",
    "d.c.test",
    "x.test",
    "test",
    "other.example",
    "127.0.0.1",
];

const TARGETS: [&str; 9] = [
    "/",
    "/u/",
    "/u/12",
    "/u/exact",
    "/u/long/12",
    "/u/long/exact",
    "/u/long/y",
    "/x",
    "/u/%31?y",
];

/// The location that a request came from, or the status of an answer that is no origin's.
fn place(to: SocketAddr, host: &str, target: &str) -> String {
    let mut client = Client::connect(to);
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    let answer = client.answer();
    match answer.status {
        200 => answer.text(),
        status => status.to_string(),
    }
}

fn servers(rng: &mut Rng, address: SocketAddr) -> String {
    let mut groups: Vec<Vec<&str>> = vec![Vec::new()];
    for name in NAMES {
        if rng.percent(15) {
            continue;
        }
        let at = usize::try_from(rng.within(0, groups.len() as u64)).expect("few");
        if rng.percent(40) {
            groups[at].push(name);
        } else {
            groups.push(vec![name]);
        }
    }
    let mut text = String::new();
    for (nth, names) in groups.iter().enumerate() {
        let flag = if nth == 0 { " default_server" } else { "" };
        let names = match &names[..] {
            [] => String::new(),
            names => {
                let names: Vec<String> = names.iter().map(|it| format!("\"{it}\"")).collect();
                format!("server_name {};", names.join(" "))
            }
        };
        writeln!(text, "server {{ listen {address}{flag}; {names}").expect("text");
        for (at, location) in PLACES.iter().enumerate() {
            if rng.percent(if at == 0 { 80 } else { 50 }) {
                writeln!(
                    text,
                    "location {location} {{ proxy_set_header X-Place {nth}-{at}; proxy_pass http://origin; }}"
                )
                .expect("text");
            }
        }
        text.push_str("location /unused/ { proxy_pass http://origin; } }\n");
    }
    text
}

#[test]
fn drip_on_the_imported_file_finds_the_location_of_each_host_and_wildcard() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let name = exchange.field("x-place").unwrap_or_default().to_owned();
        exchange.reply(name.as_bytes())
    });
    let mut seen = BTreeSet::new();
    for seed in 0..6 {
        let mut rng = Rng::of(43, seed);
        let nginx = Nginx::with_servers(&origin, |address| servers(&mut rng, address));
        let gateway = drip_on_the_file_of(&nginx);
        for host in HOSTS {
            for target in TARGETS {
                let expected = place(nginx.address, host, target);
                let found = place(gateway.address(), host, target);
                let text = std::fs::read_to_string(nginx.file()).expect("a file");
                assert_eq!(found, expected, "{seed}: {host} {target}\n{text}");
                seen.insert((seed, found));
            }
        }
    }
    assert!(seen.len() > 60, "{seen:?}");
}
