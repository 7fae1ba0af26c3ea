//! Serves client connections on worker threads. `acceptor` accepts them.
//!
//! A *permit* of a connection is one of the `max_connections` that may be open at once. The
//! *gateway* is the settings in force with their zones and origins; a reload replaces it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::{Arbiter, ArbiterHandle};
use config::{self, Listen, ListenService};
use futures_util::FutureExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::acceptor::{Accepted, Acceptor};
use super::descriptors;
use super::full::{self, KernelQueue};
use super::listeners::{AcceptedSocket, Listener};
use super::tls::{log_failed_handshake, log_no_header, tls_servers};
use crate::http::downstream::{
    self, Peek, Peer, PeerFacts, Socket, Timeouts, TlsServer, read_proxy_header,
};
use crate::http::exchange::Worker;
use crate::http::gateway::Gateway;
use crate::http::tcp::set_keepalive;
use crate::observe::connections::{ClientConnections, ConnectionPermit};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Time limit for the workers' remaining tasks after the last connection has ended.
const MAX_LAST_TASKS: Duration = Duration::from_secs(1);

/// The gateway in force; `None` before the first one.
type GatewayWatch = watch::Receiver<Option<Arc<Gateway>>>;

/// Accepts client connections and serves them on the workers. Each worker is a thread.
pub(super) struct Accepting {
    pub(super) acceptor: Acceptor,
    workers: Vec<Arbiter>,
    pub(super) connections: ClientConnections,
}

impl Accepting {
    /// Listens at all addresses of `server`. Clients are served once `gateway` holds a gateway.
    ///
    /// # Errors
    ///
    /// An address cannot be listened on, a certificate cannot be read, or a thread cannot be
    /// started.
    pub(super) async fn start(
        server: &config::Server,
        gateway: GatewayWatch,
        connections: ClientConnections,
    ) -> io::Result<Self> {
        let limit = descriptors::raise_limit();
        let entries = ListenEntry::build_all(server)?;
        let listeners = Listener::open_all(&server.listen)?;
        let mut workers = Vec::new();
        let mut inboxes = Vec::new();
        for _ in 0..server.workers.get() {
            let (worker, inbox) = start_worker(gateway.clone(), entries.clone()).await?;
            workers.push(worker);
            inboxes.push(inbox);
        }
        let max_connections = server.max_connections.get();
        let clients = descriptors::max_clients(max_connections, limit);
        // `clients` is lower than `max_connections` if the system allows fewer.
        connections.allow(max_connections, clients);
        actix_rt::spawn(clock::follow_wall());
        let queue = KernelQueue::of_listeners(&listeners);
        actix_rt::spawn(full::watch(connections.clone(), queue));
        Ok(Self {
            acceptor: Acceptor::start(listeners, inboxes, connections.clone())?,
            workers,
            connections,
        })
    }

    /// Returns the threads that serve connections.
    pub(super) fn workers(&self) -> Vec<ArbiterHandle> {
        self.workers.iter().map(Arbiter::handle).collect()
    }

    /// Returns all threads that accept or serve connections.
    pub(super) fn threads(&self) -> Vec<ArbiterHandle> {
        let acceptor = self.acceptor.thread.clone();
        self.workers().into_iter().chain([acceptor]).collect()
    }

    /// Stops the workers and all remaining work of their connections.
    pub(super) async fn end(self) {
        let (done, ended) = oneshot::channel();
        std::thread::spawn(move || {
            for worker in &self.workers {
                worker.stop();
            }
            for worker in self.workers {
                // A worker that panicked has ended too.
                let _panicked = worker.join();
            }
            // The receiver is dropped if the workers did not end in time.
            let _late = done.send(());
        });
        // A running DNS lookup may block a worker for long.
        let _ended_or_late = timeout(MAX_LAST_TASKS, ended).await;
    }
}

/// Starts a worker thread. Returns the thread and the channel that passes connections to it.
async fn start_worker(
    gateway: GatewayWatch,
    entries: Vec<ListenEntry>,
) -> io::Result<(Arbiter, UnboundedSender<Accepted>)> {
    let thread = Arbiter::try_new()?;
    let (inbox, accepted) = mpsc::unbounded_channel();
    let (start, started) = oneshot::channel();
    thread.spawn_fn(move || {
        let worker = Worker::new(gateway);
        actix_rt::spawn(work(worker, accepted, entries));
        // The receiver is dropped only when the process ends.
        let _ignored = start.send(());
    });
    match started.await {
        Ok(()) => Ok((thread, inbox)),
        Err(_) => Err(io::Error::other("a worker did not start")),
    }
}

/// Serves the connections that this worker receives, until the channel is closed.
async fn work(
    worker: Rc<Worker>,
    mut accepted: UnboundedReceiver<Accepted>,
    entries: Vec<ListenEntry>,
) {
    // `hidden` is the number of failures since the last one that was logged.
    static FAILURES: Throttle = Throttle::new();
    while let Some(accepted) = accepted.recv().await {
        let Some(entry) = entries.get(accepted.listener) else {
            continue;
        };
        let gateway = worker.gateway().await;
        let server = &gateway.settings().server;
        let connection = NewConnection {
            timeouts: gateway.timeouts(),
            worker: Rc::clone(&worker),
            entry: entry.clone(),
            permit: accepted.permit,
        };
        let start = || connection.start(accepted.stream, server);
        // A panic ends only this connection: the worker continues.
        if let Ok(Err(error)) = catch_unwind(AssertUnwindSafe(start))
            && let Some(hidden) = FAILURES.show(clock::now())
        {
            tracing::error!(%error, hidden, "a connection is closed: the event loop does not accept its socket");
        }
    }
}

/// Connection that is not served yet.
struct NewConnection {
    /// Worker that serves the connection.
    worker: Rc<Worker>,
    timeouts: Rc<Timeouts>,
    entry: ListenEntry,
    /// Permit of the connection, held until the connection has ended.
    permit: ConnectionPermit,
}

/// Settings of one listening address.
#[derive(Clone)]
struct ListenEntry {
    /// TLS of the address; `None`: no TLS.
    tls_server: Option<TlsServer>,
    /// Description of a client as far as it is the same for all clients at this address.
    peer: Peer,
}

impl ListenEntry {
    /// Builds the entries of all addresses, in the order of `listen`.
    fn build_all(server: &config::Server) -> io::Result<Vec<Self>> {
        let entry = |(listen, tls_server): (&Listen, Option<TlsServer>)| {
            let facts = listen.name.as_ref().map(|name| PeerFacts {
                listener: Some(Arc::clone(name)),
                certificate: None,
            });
            let peer = Peer {
                redirect: match listen.service {
                    ListenService::Redirect(port) => Some(port),
                    ListenService::Plain | ListenService::Tls => None,
                },
                facts: facts.map(Arc::new),
                ..Peer::default()
            };
            Self { tls_server, peer }
        };
        let entries = server.listen.iter().zip(tls_servers(server)?);
        Ok(entries.map(entry).collect())
    }
}

impl NewConnection {
    /// Starts to serve an accepted connection on this worker.
    fn start(self, stream: AcceptedSocket, server: &config::Server) -> io::Result<()> {
        match stream {
            AcceptedSocket::Tcp(tcp) => {
                let socket = TcpStream::from_std(tcp)?;
                // A client whose address is unknown has already disconnected.
                let Ok(address) = socket.peer_addr() else {
                    return Ok(());
                };
                set_keepalive(&socket, server.tcp_keepalive);
                // If the client disconnects meanwhile, the first read reports it.
                let _ignored = socket.set_nodelay(true);
                let peer = Peer {
                    address: Some((address.ip(), address.port())),
                    local_port: socket.local_addr().map_or(0, |local| local.port()),
                    ..self.entry.peer.clone()
                };
                self.serve_peer(socket, peer, server, Self::serve_tcp);
            }
            AcceptedSocket::Unix(unix) => {
                let peer = self.entry.peer.clone();
                self.serve_peer(UnixStream::from_std(unix)?, peer, server, Self::serve);
            }
        }
        Ok(())
    }

    /// Serves a connection by `serve`, after its PROXY protocol header if the peer must send one.
    fn serve_peer<S: Peek>(
        self,
        socket: S,
        peer: Peer,
        server: &config::Server,
        serve: fn(Self, S, Peer),
    ) {
        if !server.proxy_protocol.contains(peer.ip()) {
            return self.list_and_serve(socket, peer, serve);
        }
        actix_rt::spawn(async move {
            let stop = self.worker.stop_signal();
            match read_proxy_header(&socket, &self.timeouts, &stop).await {
                Ok(header) => self.list_and_serve(socket, peer.with_proxy_header(header), serve),
                Err(error) => log_no_header(peer.address.map(Into::into), &error),
            }
        });
    }

    /// Adds the connection to the list of open connections, and serves it by `serve`.
    fn list_and_serve<S>(mut self, socket: S, peer: Peer, serve: fn(Self, S, Peer)) {
        let connection = self.permit.list(peer.ip());
        serve(self, socket, Peer { connection, ..peer });
    }

    /// Serves a connection over TCP, with TLS if the address has it.
    fn serve_tcp(self, socket: TcpStream, peer: Peer) {
        let Some(tls_server) = self.entry.tls_server.clone() else {
            return self.serve(socket, peer);
        };
        let (stop, permit, address) = (self.worker.stop_signal(), self.permit, peer.address);
        let serving = tls_server.serve(socket, peer, self.timeouts, stop, self.worker);
        actix_rt::spawn(serving.map(move |served| {
            drop(permit);
            if let Err(error) = served {
                log_failed_handshake(address.map(Into::into), &error);
            }
        }));
    }

    /// Serves a connection whose protocol is known.
    fn serve(self, socket: impl Socket, peer: Peer) {
        let (stop, permit) = (self.worker.stop_signal(), self.permit);
        let serving = downstream::serve(socket, peer, self.timeouts, &stop, self.worker);
        actix_rt::spawn(serving.map(|()| drop(permit)));
    }
}
