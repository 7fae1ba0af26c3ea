//! Compares what drip, nginx and Varnish reuse by RFC 9111.
//!
//! The cases are those of the cache tests at <https://github.com/http-tests/cache-tests> that apply
//! to a shared cache without revalidation, written anew. Each is one request, a pause, and another
//! one: the second is answered from memory, or reaches the origin.
//!
//! `docs/reference/routes-collapse.md` says which answers drip reuses. nginx and Varnish always
//! send a GET for the complete resource to the origin. So "HEAD, then GET" is no fault, and "a
//! part" is a fault of this origin. If Varnish finds no valid date, it uses its default lifetime.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use super::cases::{Request, cases};
use crate::programs::nginx::Nginx;
use crate::programs::varnish::Varnish;
use crate::support::collapse::{file, request};
use crate::support::scripted::{Script, Scripted};
use crate::support::{Client, Gateway};

/// Pause longer than the lifetime of responses that become stale between two requests.
const PAUSE: Duration = Duration::from_secs(3);

/// Statuses that a cache may reuse without an explicit lifetime.
const STATUSES: &str = "200 203 204 300 301 308 404 405 410 414 501";

#[test]
fn no_answer_is_reused_that_rfc_9111_forbids_and_nginx_and_varnish_differ_where_this_says() {
    let all = cases();
    let scripts: Vec<_> = all.iter().map(|it| it.script).collect();
    let origin = Scripted::start(move |target| {
        let nth = target.split('/').nth(2).expect("a number");
        let nth: usize = nth.parse().expect("a number");
        scripts.get(nth).copied().unwrap_or(Script {
            status: 200,
            fields: "Cache-Control: no-store",
        })
    });
    let to = origin.origin.address;
    let drip = Gateway::start(&file(
        to,
        "keep = \"1h\"\nvary = [\"foo\", \"bar\", \"accept-language\"]",
    ));
    let cache = "proxy_cache_path cache keys_zone=c:1m; proxy_cache c; proxy_cache_lock on;";
    let location = format!("proxy_cache_valid {STATUSES} 1h;");
    let nginx = Nginx::before(to, cache, &[("/", &location)]);
    let varnish = Varnish::start(to, 3600);
    let programs = [
        ("drip", drip.address()),
        ("nginx", nginx.address),
        ("varnish", varnish.address),
    ];
    for (name, at) in programs {
        for (nth, case) in all.iter().enumerate() {
            send(at, &case.first, &target(name, nth));
            if let Some(between) = &case.between {
                send(at, between, &target(name, nth));
            }
        }
    }
    thread::sleep(PAUSE);
    let mut wrong = Vec::new();
    for (name, at) in programs {
        for (nth, case) in all.iter().enumerate() {
            let target = target(name, nth);
            let before = origin.asked(&target);
            assert!(before > 0, "{name} {}", case.name);
            // It may be fetched again behind the response. 304 has few fields.
            let is_reused = match send(at, &case.second, &target) {
                Some(nth) => nth <= before,
                None => origin.asked(&target) == before,
            };
            let differs = is_reused != case.may;
            if differs != case.differs.contains(&name[..1]) {
                wrong.push(format!("{name} reuses {:?}: {is_reused}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn target(program: &str, nth: usize) -> String {
    format!("/{program}/{nth}")
}

/// Sends a request, and waits for its response. Returns the number given by the origin.
fn send(at: SocketAddr, (method, fields): &Request, target: &str) -> Option<usize> {
    let mut client = Client::connect(at);
    let fields = format!("{fields}Connection: close\r\n");
    client.send(request(method, target, &fields).as_bytes());
    let head = client.head();
    assert!(head.first_line.starts_with("HTTP/1.1 "), "{head:?}");
    client.rest();
    head.field("x-nth").and_then(|nth| nth.parse().ok())
}
