//! Clients that send the next request as soon as the last one is answered.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local, yield_now};

use super::answers::{Answers, Counts};
use super::client::Transport;
use super::crowd_clients::{CrowdState, run_client};
use super::placement::Side;
use super::wait_until;

/// The keys that a crowd uses.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// All requests have this key.
    One(u64),
    /// A number of keys. The requests use them in turn, again and again.
    InTurn(u64),
    /// A number of keys, each used once. Then the crowd stops.
    Once(u64),
    /// A number of keys, in scattered order.
    Scattered(u64),
    /// Each client has its own key.
    Own,
}

/// The protocol of a crowd's clients.
#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    /// HTTP/1.1, with one connection for each client.
    Http1(Transport),
    /// HTTP/2 over TLS, with this many clients on one connection, each on its own stream.
    ///
    /// These clients have no timeout and send more than one request.
    Http2 { streams: usize },
}

/// A number of clients and the requests that they send.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    pub to: SocketAddr,
    pub path: &'static str,
    pub keys: Keys,
    pub clients: usize,
    pub protocol: Protocol,
    /// Whether each client sends only one request, a few clients at the same time.
    ///
    /// A client keeps its connection until the crowd stops.
    pub once: bool,
    /// Time over which the clients start, evenly spread.
    pub ramp_up: Duration,
    /// Timeout after which a client gives up and sends its request on another connection.
    pub patience: Option<Duration>,
    /// Whether all other processes on its processor run before it.
    pub has_low_priority: bool,
}

impl Crowd {
    /// Returns `clients` that begin at once and have no timeout.
    pub fn new(to: SocketAddr, path: &'static str, keys: Keys, clients: usize) -> Self {
        Self {
            to,
            path,
            keys,
            clients,
            protocol: Protocol::Http1(Transport::Plain),
            once: false,
            ramp_up: Duration::ZERO,
            patience: None,
            has_low_priority: false,
        }
    }

    /// Starts the crowd on a thread of its own.
    pub fn start(self) -> RunningCrowd {
        let counts = Arc::<Counts>::default();
        let thread_counts = Arc::clone(&counts);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            Side::Load.pin_thread();
            if self.has_low_priority {
                let _nicer = rustix::process::nice(19);
            }
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime
                .expect("a runtime")
                .block_on(LocalSet::new().run_until(async move {
                    let state = Rc::new(CrowdState::new(self, thread_counts));
                    let clients_on_connection = match self.protocol {
                        Protocol::Http1(_) => 1,
                        Protocol::Http2 { streams } => streams,
                    };
                    for client in (0..self.clients).step_by(clients_on_connection) {
                        spawn_local(run_client(Rc::clone(&state), client));
                        // The yield lets other connections be served meanwhile.
                        yield_now().await;
                    }
                    let _notified = stopped.await;
                }));
        });
        RunningCrowd {
            clients: self.clients,
            counts,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

/// A running crowd. It stops when this is dropped.
#[derive(Debug)]
pub struct RunningCrowd {
    clients: usize,
    counts: Arc<Counts>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RunningCrowd {
    /// Waits at most `limit` until each client has begun. Returns whether all have begun.
    pub fn wait_for_all(&self, limit: Duration) -> bool {
        let all = self.clients as u64;
        wait_until(limit, || self.counts.clients() >= all)
    }

    pub fn answers(&self) -> Answers {
        self.counts.answers()
    }
}

impl Drop for RunningCrowd {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}
