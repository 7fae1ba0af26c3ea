//! An origin that cannot be reached for a while, and requests that wait for it.

mod bounds;
mod killed;
mod lost;
mod restart;
mod servers;

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::{Client, Exchange, Gateway, MS, Origin, eventually};

/// How much longer than `hold` an answer may take on a busy machine.
const LATE: Duration = Duration::from_secs(2);

/// A file whose origin `app` has these servers and fields.
fn held(servers: &[SocketAddr], fields: &str, rest: &str) -> String {
    let servers: Vec<String> = servers.iter().map(|to| format!("http://{to}")).collect();
    format!(
        "workers = 4\n\n[origins.app]\nservers = {servers:?}\n{fields}\n\n\
         [zones.key]\nkey = \"$arg_key\"\nrate = \"1000r/s\"\n\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n{rest}\n"
    )
}

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
