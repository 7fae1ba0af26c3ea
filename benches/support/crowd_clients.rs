//! The clients of a crowd. Each sends a request, reads the response, and repeats.

use std::cell::Cell;
use std::convert::Infallible;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::answers::{Counts, Outcome};
use super::client::{Connection, Transport};
use super::crowd::{Crowd, Keys, Protocol};
use super::http2;

/// Pause after a failed connect, so that the client does not retry in a busy loop.
const RETRY: Duration = Duration::from_millis(10);
/// Number of clients with a single request each that send it at the same time.
const AT_ONCE: usize = 16;

/// The state shared by all clients of a crowd.
pub struct CrowdState {
    crowd: Crowd,
    /// Permits for clients that send only one request.
    ///
    /// The memory of the proxy must not depend on how many of them are answered at the same time.
    single_requests: Semaphore,
    /// Number of requests so far, of all clients.
    next: Cell<u64>,
    counts: Arc<Counts>,
}

impl CrowdState {
    pub fn new(crowd: Crowd, counts: Arc<Counts>) -> Self {
        Self {
            crowd,
            single_requests: Semaphore::new(AT_ONCE),
            next: Cell::new(0),
            counts,
        }
    }

    /// Returns the time between the start of the crowd and the start of this client.
    fn start_delay(&self, client: usize) -> Duration {
        let crowd = &self.crowd;
        crowd.ramp_up.mul_f64(share(client, crowd.clients))
    }

    /// Returns the key of the next request; `None` if there is no further request.
    fn next_key(&self, client: usize) -> Option<u64> {
        let next = self.next.replace(self.next.get() + 1);
        match self.crowd.keys {
            Keys::One(key) => Some(key),
            Keys::InTurn(count) => Some(next % count),
            Keys::Once(count) => Some(next).filter(|key| *key < count),
            Keys::Scattered(count) => Some(scatter(next) % count),
            Keys::Own => Some(client as u64),
        }
    }
}

/// Runs one client, or all clients that share one connection.
pub async fn run_client(state: Rc<CrowdState>, client: usize) {
    match state.crowd.protocol {
        Protocol::Http1(transport) => http1_client(state, client, transport).await,
        Protocol::Http2 { streams } => http2_clients(state, client, streams).await,
    }
}

/// Runs a client with a connection of its own.
async fn http1_client(state: Rc<CrowdState>, client: usize, transport: Transport) {
    let crowd = &state.crowd;
    sleep(state.start_delay(client)).await;
    let mut connection = Connection::with_transport(transport, crowd.to);
    // If connecting fails, the first request tries again and counts the failure.
    let connection_permit = if crowd.once {
        state.single_requests.acquire().await.ok()
    } else {
        None
    };
    let _opened = connection.open().await;
    state.counts.count_client();
    let mut request = Vec::new();
    while let Some(key) = state.next_key(client) {
        request.clear();
        let path = crowd.path;
        // Writing to memory cannot fail.
        let _taken = write!(
            request,
            "GET {path} HTTP/1.1\r\nHost: bench\r\nX-Key: {key}\r\n\r\n"
        );
        let answer = connection.exchange(&request);
        let answer = match crowd.patience {
            Some(patience) => timeout(patience, answer).await.ok(),
            None => Some(answer.await),
        };
        let outcome = match answer {
            Some(Ok(status)) => Outcome::Answered(status),
            Some(Err(_)) => Outcome::Failed,
            None => Outcome::GivenUp,
        };
        state.counts.count(outcome);
        match outcome {
            Outcome::Answered(_) if crowd.once => {
                drop(connection_permit);
                return std::future::pending().await;
            }
            Outcome::Failed => sleep(RETRY).await,
            _ => {}
        }
    }
}

/// Runs the clients that share one connection, of which `first_client` is the first.
async fn http2_clients(state: Rc<CrowdState>, first_client: usize, streams: usize) {
    sleep(state.start_delay(first_client)).await;
    let mut has_counted = false;
    loop {
        let connection = http2::Connection::open(state.crowd.to, state.crowd.path).await;
        if !std::mem::replace(&mut has_counted, true) {
            (0..streams).for_each(|_| state.counts.count_client());
        }
        if let Ok(connection) = connection {
            // Ends when the connection ends.
            let _ended = http2_streams(&state, first_client, streams, connection).await;
        }
        state.counts.count(Outcome::Failed);
        sleep(RETRY).await;
    }
}

/// Sends the next request on each stream that has ended, until the connection ends.
async fn http2_streams(
    state: &CrowdState,
    client: usize,
    streams: usize,
    mut connection: http2::Connection,
) -> io::Result<Infallible> {
    let send_next = |connection: &mut http2::Connection| {
        if let Some(key) = state.next_key(client) {
            connection.open_stream(key);
        }
    };
    for _ in 0..streams {
        send_next(&mut connection);
    }
    loop {
        for outcome in connection.outcomes().await? {
            state.counts.count(outcome);
            send_next(&mut connection);
        }
    }
}

/// Returns a number of a fixed sequence of scattered numbers, the same in each run.
fn scatter(nth: u64) -> u64 {
    let mixed = nth.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

/// Returns `part` as a share of `all`.
fn share(part: usize, all: usize) -> f64 {
    super::figures::float(part as u64) / super::figures::float(all as u64)
}
