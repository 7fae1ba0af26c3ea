//! `[routes.collapse]`: requests for the same thing share the answer of one of them.

mod browser;
mod cases;
mod crowd;
mod fields;
mod gate;
mod kept;
mod poison;
mod private;
mod reload;
mod scripted;
mod shares;
mod soak;
mod stale;
mod suite;
mod trouble;
mod varnish;

use std::net::SocketAddr;

use crate::support::{Answer, Client, Gateway, HoldingOrigin, eventually};

/// A file with the origin `app` and a route of all paths to it that collapses with these fields.
///
/// Each request passes the zone `all`, which counts it: see [`wait_until_passed`].
fn file(origin: SocketAddr, collapse: &str) -> String {
    file_with(origin, "", "", collapse)
}

/// The same with further fields of the origin and of the route.
fn file_with(origin: SocketAddr, of_origin: &str, of_route: &str, collapse: &str) -> String {
    format!(
        r#"
[origins.app]
servers = ["http://{origin}"]
{of_origin}
{ALL}
[[routes]]
path = "/"
origin = "app"
headers = ["shared"]
{LIMITS}
{of_route}
[routes.collapse]
{collapse}
"#
    )
}

/// A zone that rejects nothing, and the limit of a route that uses it.
const ALL: &str = "[zones.all]\nkey = \"all\"\nrate = \"100000r/s\"\n";
const LIMITS: &str = "limits = [{ zone = \"all\", burst = 100000, nodelay = true }]";

/// Sends a request for host `a` with these fields, each with the end of its line.
fn ask(at: SocketAddr, target: &str, fields: &str) -> Client {
    let mut client = Client::connect(at);
    client.send(request("GET", target, fields).as_bytes());
    client
}

fn request(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

/// Waits until this many requests have come since the start: they lead, follow, have their answer, or go on for
/// themselves.
fn wait_until_passed(gateway: &Gateway, count: i64) {
    eventually(&format!("{count} requests came"), || {
        let metrics = gateway.metrics();
        let names = [
            "drip_shared_waiting",
            "drip_origin_queue_depth",
            "drip_shared_requests_total",
        ];
        let counts = names.map(|name| metrics.count(name, &[]));
        counts.into_iter().sum::<i64>() >= count
    });
}

/// How many requests were answered in this way: `leader`, `follower`, `kept`, `stale`, `alone`, `refresh`.
fn shared(gateway: &Gateway, outcome: &str) -> i64 {
    let labels = [("outcome", outcome)];
    gateway
        .metrics()
        .count("drip_shared_requests_total", &labels)
}

/// The value of `X-Drip-Shared`; empty if there is none.
fn how(answer: &Answer) -> &str {
    answer.field("x-drip-shared").unwrap_or_default()
}

#[test]
fn those_who_ask_while_one_is_at_the_origin_get_its_answer() {
    let origin = HoldingOrigin::start();
    let gateway = Gateway::start(&file(origin.origin.address, ""));
    let at = gateway.address();
    let mut leader = ask(at, "/page", "");
    origin.origin.wait_for(1);
    let followers: Vec<_> = (0..10).map(|_| ask(at, "/page", "")).collect();
    wait_until_passed(&gateway, 11);
    origin.release("/page");
    assert_eq!(how(&leader.answer()), "leader");
    for mut follower in followers {
        let answer = follower.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
        assert_eq!(how(&answer), "follower");
    }
    assert_eq!(origin.targets(), ["/page"]);
    let counted = ["leader", "follower", "kept", "alone"].map(|it| shared(&gateway, it));
    assert_eq!(counted, [1, 10, 0, 0]);
}
