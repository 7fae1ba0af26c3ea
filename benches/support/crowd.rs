//! Clients that ask again as soon as they are answered.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local, yield_now};

use super::answers::{Answers, Counts};
use super::asking::{Mind, client_of};
use super::client::Transport;
use super::place::Side;
use super::within;

/// The keys that a crowd shows.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// All the same.
    One(u64),
    /// So many, each request the next of them, and from the first again.
    InTurn(u64),
    /// So many, each once; then the crowd stays at home.
    Once(u64),
    /// So many, in no order.
    Scattered(u64),
    /// Each client its own.
    Own,
}

/// What the clients of a crowd speak.
#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    /// HTTP/1.1, each client on a connection of its own.
    Http1(Transport),
    /// HTTP/2 over TLS, so many clients on one connection, each a stream. They do not give up,
    /// and ask more than once.
    Http2 { streams: usize },
}

/// Who comes, and what they ask for.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    pub to: SocketAddr,
    pub path: &'static str,
    pub keys: Keys,
    pub clients: usize,
    pub protocol: Protocol,
    /// Each client asks once, a few of them at the same time, and keeps its connection until the
    /// crowd leaves.
    pub once: bool,
    /// Over which time they come, evenly.
    pub coming: Duration,
    /// After how long a client gives up, and asks anew on another connection.
    pub patience: Option<Duration>,
    /// Lets all else on its processor go first.
    pub meek: bool,
}

impl Crowd {
    /// `clients` who come at once and do not give up.
    pub fn new(to: SocketAddr, path: &'static str, keys: Keys, clients: usize) -> Self {
        Self {
            to,
            path,
            keys,
            clients,
            protocol: Protocol::Http1(Transport::Plain),
            once: false,
            coming: Duration::ZERO,
            patience: None,
            meek: false,
        }
    }

    /// Sends them, on a thread of their own.
    pub fn come(self) -> Coming {
        let counts = Arc::<Counts>::default();
        let counted = Arc::clone(&counts);
        let (leave, left) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            Side::Load.take();
            if self.meek {
                let _nicer = rustix::process::nice(19);
            }
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime
                .expect("a runtime")
                .block_on(LocalSet::new().run_until(async move {
                    let mind = Rc::new(Mind::new(self, counted));
                    let own = match self.protocol {
                        Protocol::Http1(_) => 1,
                        Protocol::Http2 { streams } => streams,
                    };
                    for client in (0..self.clients).step_by(own) {
                        spawn_local(client_of(Rc::clone(&mind), client));
                        // The others' connections are served meanwhile.
                        yield_now().await;
                    }
                    let _told = left.await;
                }));
        });
        Coming {
            clients: self.clients,
            counts,
            leave: Some(leave),
            thread: Some(thread),
        }
    }
}

/// A crowd that is there until this is dropped.
#[derive(Debug)]
pub struct Coming {
    clients: usize,
    counts: Arc<Counts>,
    leave: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Coming {
    /// Waits until each client has come, at most `limit`; says whether they have.
    pub fn wait_for_all(&self, limit: Duration) -> bool {
        let all = self.clients as u64;
        within(limit, || self.counts.clients() >= all)
    }

    pub fn answers(&self) -> Answers {
        self.counts.answers()
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        drop(self.leave.take());
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}
