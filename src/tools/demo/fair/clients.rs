//! The clients of the scene `fair`: one floods the gate, and nine send few requests.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use awc::http::header;
use awc::{Client, ClientRequest};
use gateway::time::clock;

use super::score::{ClientKind, Score};
use crate::demo::crowd::{client, send};
use crate::demo::origin::DEMO_AGENT;

/// Number of light clients.
const LIGHT: u8 = 9;

/// Number of requests that the flooding client sends in each tenth of a second.
pub(super) const FLOOD_IN_A_TENTH: usize = 10;

/// Interval between two requests of a light client, in tenths of a second.
pub(super) const LIGHT_EVERY: usize = 5;

/// One flooding client and nine light clients, each with its own address.
pub(super) struct Clients {
    url: String,
    flood: Client,
    light: Vec<Client>,
}

impl Clients {
    pub(super) fn new(gateway: SocketAddr) -> Self {
        // All addresses of 127.0.0.0/8 belong to this machine.
        let with_address = |last| client(Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))));
        Self {
            url: format!("http://{gateway}/"),
            flood: with_address(1),
            light: (2..2 + LIGHT).map(with_address).collect(),
        }
    }

    /// Sends the requests of a tenth. Tenths are counted from the start.
    pub(super) fn send(&self, tenth: u64, score: &Score) {
        // Half of the flood goes first, so a light client is neither first nor last in the queue.
        self.send_flood(FLOOD_IN_A_TENTH / 2, score);
        // The light clients send in turn, not all at once.
        let first = usize::try_from(tenth).unwrap_or_default() % LIGHT_EVERY;
        for client in self.light.iter().skip(first).step_by(LIGHT_EVERY) {
            self.call(client, ClientKind::Light, score);
        }
        self.send_flood(FLOOD_IN_A_TENTH.div_ceil(2), score);
    }

    /// Sends requests of the flooding client.
    fn send_flood(&self, requests: usize, score: &Score) {
        for _ in 0..requests {
            self.call(&self.flood, ClientKind::Flood, score);
        }
    }

    /// Sends a request of a client, without waiting for its end.
    fn call(&self, client: &Client, kind: ClientKind, score: &Score) {
        let request = client.get(&self.url);
        let request = request.insert_header((header::USER_AGENT, DEMO_AGENT));
        actix_rt::spawn(call(request, kind, score.clone()));
    }
}

/// Sends a request and records its end.
async fn call(request: ClientRequest, kind: ClientKind, score: Score) {
    let sent = clock::now();
    let outcome = send(request).await;
    score.add(kind, outcome, clock::now().since(sent));
}
