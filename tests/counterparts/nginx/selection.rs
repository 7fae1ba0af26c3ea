//! Compares which route nginx and drip find for a request, by host and path.
//!
//! drip runs on a file written by hand, and on the import of nginx's file.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::SocketAddr;

use super::import::drip_on_the_file_of;
use crate::programs::nginx::Nginx;
use crate::support::rng::Rng;
use crate::support::{Client, Exchange, Gateway, Origin};

const NAMES: &str = "a.test b.a.test c.test *.test *.a.test *.b.a.test *.c.test *.d.c.test .e.test";

/// Locations of nginx. drip has the same paths, with a prefix for regular expressions.
#[rustfmt::skip]
const LOCATIONS: [&str; 10] = [
    "/", "/u/", "/u/long/", "= /u/exact", "= /u/long/exact", "= /u/1.php", "~ ^/u/[0-9]+",
    "~ \\.php$", "~* \\.(png|jpe?g)$", "~ x$",
];

const HOSTS: &str = "a.test A.Test:8080 b.a.test x.b.a.test y.x.b.a.test x.a.test c.test c.test. x.c.test x.d.c.test \
    d.c.test e.test x.e.test x.test xa.test test other.example 127.0.0.1";

const TARGETS: &str = "/ /u/ /u/12 /u/%31%32 /u/exact /u/exact/ /u/long/12 /u/long/exact /u/long/x /u/long/y \
    /u/long/../../a /u//12 /U/12 /u/1.php /x /u/%31?y /x/y.php /x/y.php/z /x/%79%2ephp?x /X.PNG /x.jpg?y.php";

/// Returns the location of a request, or the status of a response that is not the origin's.
fn route_of(client: &mut Client, host: &str, target: &str) -> String {
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    let answer = client.answer();
    match answer.status {
        200 => answer.text(),
        status => status.to_string(),
    }
}

/// Returns the names of each server, in random groups.
///
/// The first is the default server, with its own names or without.
fn groups(rng: &mut Rng, default_has_names: bool) -> Vec<Vec<&'static str>> {
    let mut groups = vec![Vec::new()];
    for name in NAMES.split(' ') {
        let from = u64::from(!default_has_names);
        let to = groups.len() as u64;
        if rng.percent(20) {
            continue;
        }
        if rng.percent(40) && from < to {
            let at = usize::try_from(rng.within(from, to)).expect("few");
            groups[at].push(name);
        } else {
            groups.push(vec![name]);
        }
    }
    groups
}

/// Fails unless nginx and drip find the same for all hosts and targets. `start`: makes both.
fn compare(start: impl Fn(&Origin, &mut Rng) -> (Nginx, Gateway)) {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let name = exchange.field("x-place").unwrap_or_default().to_owned();
        exchange.reply(name.as_bytes())
    });
    let mut seen = BTreeSet::new();
    for seed in 0..6 {
        let (nginx, gateway) = start(&origin, &mut Rng::of(7, seed));
        let mut clients = [nginx.address, gateway.address()].map(Client::connect);
        let text = std::fs::read_to_string(nginx.file()).expect("a file");
        for host in HOSTS.split(' ') {
            for target in TARGETS.split(' ') {
                let [expected, found] = clients.each_mut().map(|it| route_of(it, host, target));
                assert_eq!(found, expected, "{seed}: {host} {target}\n{text}");
                seen.insert((seed, found));
            }
        }
    }
    assert!(seen.len() > 60, "{seen:?}");
}

/// Host and path decide as in nginx, whatever the order of the file.
///
/// Every server has the same locations: nginx looks for the server first, drip for the path.
#[test]
fn the_host_and_the_path_decide_as_in_nginx_whatever_the_order_of_the_file() {
    compare(|origin, rng| {
        let mut groups = groups(rng, false);
        let at = usize::try_from(rng.within(0, groups.len() as u64)).expect("few");
        groups.swap(0, at);
        let mut ours = format!("[origins.app]\nservers = [\"http://{}\"]\n", origin.address);
        for (nth, names) in groups.iter().enumerate() {
            let names = names.iter().flat_map(|name| match name.strip_prefix('.') {
                Some(rest) => vec![rest.to_owned(), format!("*.{rest}")],
                None => vec![(*name).to_owned()],
            });
            let names: Vec<_> = names.collect();
            let host = match &names[..] {
                [] => String::new(),
                [name] => format!("host = {name:?}\n"),
                names => format!("host = {names:?}\n"),
            };
            for (at, path) in LOCATIONS.iter().enumerate() {
                let path = path.replace("~ ", "regex:").replace("~* ", "regex:(?i)");
                let field = format!("request_headers = {{ x-place = \"{nth}-{at}\" }}");
                writeln!(
                    ours,
                    "[[routes]]\npath = '{path}'\norigin = \"app\"\n{host}{field}"
                )
                .expect("text");
            }
        }
        let nginx = Nginx::with_servers(origin, |address| servers(&groups, address, |_| true));
        (nginx, Gateway::start(&ours))
    });
}

#[test]
fn drip_on_the_imported_file_finds_the_location_of_each_host_and_wildcard() {
    compare(|origin, rng| {
        let groups = groups(rng, true);
        let is_there = |at| rng.percent(if at == 0 { 80 } else { 50 });
        let nginx = Nginx::with_servers(origin, |address| servers(&groups, address, is_there));
        let gateway = drip_on_the_file_of(&nginx);
        (nginx, gateway)
    });
}

/// Returns nginx's servers with the present locations.
///
/// The server without names, or else the first, is the default one.
fn servers(
    groups: &[Vec<&str>],
    address: SocketAddr,
    mut is_there: impl FnMut(usize) -> bool,
) -> String {
    let default = groups.iter().position(Vec::is_empty).unwrap_or(0);
    let mut text = String::new();
    for (nth, names) in groups.iter().enumerate() {
        let flag = if nth == default {
            " default_server"
        } else {
            ""
        };
        let names = if names.is_empty() {
            String::new()
        } else {
            format!("server_name {};", names.join(" "))
        };
        writeln!(text, "server {{ listen {address}{flag}; {names}").expect("text");
        for (at, location) in LOCATIONS.iter().enumerate() {
            if is_there(at) {
                let field = format!("proxy_set_header X-Place {nth}-{at};");
                writeln!(
                    text,
                    "location {location} {{ {field} proxy_pass http://origin; }}"
                )
                .expect("text");
            }
        }
        text.push_str("location /unused/ { proxy_pass http://origin; } }\n");
    }
    text
}
