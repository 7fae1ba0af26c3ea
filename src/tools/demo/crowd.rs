//! The clients of the scene `smooth`: they send bursts of requests.
//!
//! `client` and `send` are also used by the scene `fair`. A tenth is a tenth of a second.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use awc::http::header;
use awc::{Client, ClientRequest, Connector};

use super::origin::DEMO_AGENT;
use super::tally::{Outcome, TENTHS, Tally};

/// The bursts of a round of ten seconds: the tenth at which each is sent, and its requests.
///
/// All requests of a burst are sent at once. The average is 12.9 requests per second.
const BURSTS: [(u64, usize); 11] = [
    (0, 24),
    (13, 6),
    (21, 18),
    (30, 3),
    (36, 12),
    (44, 1),
    (50, 20),
    (58, 8),
    (70, 30),
    (85, 5),
    (93, 2),
];

/// Number of tenths in a round.
const ROUND: u64 = 100;

/// Delay of a burst after the start of its tenth.
///
/// At usual rates the departures then fall well inside a tenth, and jitter does not move them into
/// the next bar.
const OFFSET_IN_TENTH: Duration = Duration::from_millis(15);

/// Maximum number of requests in flight. At this limit the crowd sends no more.
const MAX_IN_FLIGHT: usize = 256;

/// The clients, which share connections.
pub(super) struct Crowd {
    client: Client,
    url: String,
    tally: Tally,
}

impl Crowd {
    pub(super) fn new(gateway: SocketAddr, tally: Tally) -> Self {
        Self {
            client: client(None),
            url: format!("http://{gateway}/"),
            tally,
        }
    }

    /// Sends the burst of a tenth, if it has one. Tenths are counted from the start of the scene.
    pub(super) fn send_burst(&self, tenth: u64) {
        let tenth_in_round = tenth % ROUND;
        let mut bursts = BURSTS.iter();
        let burst = bursts.find(|(burst_tenth, _)| *burst_tenth == tenth_in_round);
        let count = burst.map_or(0, |(_, count)| *count);
        let tenth_in_second = usize::try_from(tenth).unwrap_or_default() % TENTHS;
        for _ in 0..count {
            let has_room = self.tally.with(|counts| {
                let has_room = counts.in_flight < MAX_IN_FLIGHT;
                if has_room {
                    counts.record_sent(tenth_in_second);
                }
                has_room
            });
            if has_room {
                let request = self.client.get(&self.url);
                let request = request.insert_header((header::USER_AGENT, DEMO_AGENT));
                actix_rt::spawn(call(request, self.tally.clone()));
            }
        }
    }
}

/// Sends a request a little after the start of the tenth, and records its end.
async fn call(request: ClientRequest, tally: Tally) {
    tokio::time::sleep(OFFSET_IN_TENTH).await;
    let outcome = send(request).await;
    tally.with(|counts| counts.record_end(outcome));
}

/// Returns a client that connects from `address` and waits for answers without a limit.
pub(super) fn client(address: Option<IpAddr>) -> Client {
    let connector = Connector::new().limit(MAX_IN_FLIGHT);
    let client = Client::builder().connector(connector).disable_timeout();
    match address {
        Some(address) => client.local_address(address).finish(),
        None => client.finish(),
    }
}

/// Sends a request and waits for its outcome.
pub(super) async fn send(request: ClientRequest) -> Outcome {
    let Ok(mut response) = request.send().await else {
        return Outcome::Failed;
    };
    // Reading the body to its end lets the connection be reused. Its content does not matter.
    let _body = response.body().await;
    match response.status().is_success() {
        true => Outcome::Answered,
        // Only a rejection has Retry-After: the sample origin never sends it.
        false if response.headers().contains_key(header::RETRY_AFTER) => Outcome::Rejected,
        false => Outcome::Failed,
    }
}
