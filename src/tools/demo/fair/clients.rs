//! The clients of the scene `fair`: one floods the gate, and nine send few requests.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use awc::http::header;
use awc::{Client, ClientRequest};
use gateway::time::clock;

use super::score::{Score, Who};
use crate::demo::crowd::{client, send};
use crate::demo::origin::CROWD;

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
        let of_address = |last| client(Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))));
        Self {
            url: format!("http://{gateway}/"),
            flood: of_address(1),
            light: (2..2 + LIGHT).map(of_address).collect(),
        }
    }

    /// Sends the requests of a tenth. Tenths are counted from the start.
    pub(super) fn send(&self, tenth: u64, score: &Score) {
        // Half of the flood goes first, so the light client is neither first nor last in the queue.
        self.flood(FLOOD_IN_A_TENTH / 2, score);
        // The light clients send in turn, not all at once.
        let first = usize::try_from(tenth).unwrap_or_default() % LIGHT_EVERY;
        for client in self.light.iter().skip(first).step_by(LIGHT_EVERY) {
            self.call(client, Who::Light, score);
        }
        self.flood(FLOOD_IN_A_TENTH.div_ceil(2), score);
    }

    fn flood(&self, requests: usize, score: &Score) {
        for _ in 0..requests {
            self.call(&self.flood, Who::Flood, score);
        }
    }

    fn call(&self, client: &Client, who: Who, score: &Score) {
        let request = client.get(&self.url);
        let request = request.insert_header((header::USER_AGENT, CROWD));
        actix_rt::spawn(call(request, who, score.clone()));
    }
}

async fn call(request: ClientRequest, who: Who, score: Score) {
    let sent = clock::now();
    let outcome = send(request).await;
    score.add(who, outcome, clock::now().since(sent));
}
