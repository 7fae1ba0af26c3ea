//! An origin that cannot be reached for a while, and requests that wait for it.

mod bounds;
mod lost;
mod restart;
mod servers;

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::hold::held;
use crate::support::{Client, Exchange, Gateway, MS, Origin, eventually};

/// How much longer than `hold` an answer may take on a busy machine.
const LATE: Duration = Duration::from_secs(2);

/// An origin at an address that may have been used before. Each connection has one request.
fn origin_at(address: SocketAddr) -> Origin {
    Origin::at(&address.to_string(), |exchange: &mut Exchange| {
        exchange.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")?;
        Exchange::close()
    })
}

fn gauge(gateway: &Gateway, name: &str) -> i64 {
    gateway.metrics().count(name, &[("origin", "app")])
}

fn reloads(gateway: &Gateway) -> i64 {
    let labels = [("result", "success")];
    gateway
        .metrics()
        .count("drip_config_reloads_total", &labels)
}

fn wait_for_depth(gateway: &Gateway, depth: i64) {
    eventually(&format!("{depth} wait"), || {
        gauge(gateway, "drip_origin_queue_depth") == depth
    });
}

fn ask_all(gateway: &Gateway, targets: &[&str]) -> Vec<Client> {
    let ask = |(nth, target): (usize, &&str)| {
        let client = Client::ask(gateway.address(), target);
        wait_for_depth(gateway, i64::try_from(nth + 1).expect("few"));
        client
    };
    targets.iter().enumerate().map(ask).collect()
}

fn statuses(clients: &mut [Client]) -> Vec<u16> {
    clients.iter_mut().map(|it| it.answer().status).collect()
}
