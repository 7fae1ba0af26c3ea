//! Tests of `[routes.collapse]`: equal requests share the response to one of them.

mod endless;
mod fields;
mod gate;
mod hold;
mod kept;
mod poison;
mod private;
mod refused;
mod reload;
mod shares;
mod slow_readers;
mod stale;
mod trouble;

use std::net::SocketAddr;

use crate::support::collapse::*;
use crate::support::scripted::Hold;
use crate::support::{Answer, Client, Gateway, HoldingOrigin, eventually};

/// Sends a request for host `a` with these fields, each with its line end.
fn ask(at: SocketAddr, target: &str, fields: &str) -> Client {
    let mut client = Client::connect(at);
    client.send(request("GET", target, fields).as_bytes());
    client
}

/// Waits until this many requests have passed since the start.
///
/// A request has passed if it leads, follows, has its response, or continues alone.
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

/// Returns the value of `X-Drip-Shared`; empty if there is none.
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
    let counted = ["leader", "follower", "kept", "alone"].map(|it| gateway.shared(it));
    assert_eq!(counted, [1, 10, 0, 0]);
}
