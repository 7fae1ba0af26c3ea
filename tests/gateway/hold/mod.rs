//! Tests of `hold`: requests wait for an origin that cannot be reached for a while.

mod bounds;
mod lost;
mod restart;
mod servers;

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::hold::held;
use crate::support::{Client, Exchange, Gateway, MS, Origin};

/// Delay of a response beyond `hold` on a busy machine.
const LATE: Duration = Duration::from_secs(2);

/// Starts an origin at an address that may have been used before. A connection has one request.
fn origin_at(address: SocketAddr) -> Origin {
    Origin::at(&address.to_string(), |exchange: &mut Exchange| {
        exchange.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")?;
        Exchange::close()
    })
}

/// Starts an origin that answers with the body of the request.
fn echo_at(address: SocketAddr) -> Origin {
    Origin::at(&address.to_string(), |exchange: &mut Exchange| {
        let body = exchange.body()?;
        exchange.reply(&body)
    })
}

fn ask_all(gateway: &Gateway, targets: &[&str]) -> Vec<Client> {
    let ask = |(nth, target): (usize, &&str)| {
        let client = gateway.ask(target);
        gateway.wait_at_gate(i64::try_from(nth + 1).expect("few"));
        client
    };
    targets.iter().enumerate().map(ask).collect()
}
