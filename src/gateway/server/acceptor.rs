//! Accepts client connections and hands them to the workers.
//!
//! Each connection needs a *permit*: one of the `max_connections` that may be open at once.
//!
//! actix-server (2.10) has an acceptor, too. It does not report when it has paused. And it holds
//! its sockets until the workers end: at a stop, connections in the kernel's queue would be reset.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::time::Duration;

use actix_rt::{Arbiter, ArbiterHandle};
use futures_util::future::join_all;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::listeners::{AcceptedSocket, BACKLOG, Listener};
use crate::observe::connections::{ClientConnections, ConnectionPermit};
use crate::observe::metrics::{DESCRIPTOR_WAITS, DescriptorWait};
use crate::origin::lacks_descriptor;

/// Pause before the next attempt when the system has no descriptor or memory for a connection.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// Accepted connection for a worker.
pub(super) struct Accepted {
    pub(super) stream: AcceptedSocket,
    /// Index in `listen` of the address that the client connected to.
    pub(super) listener: usize,
    /// Permit of the connection, held until the connection has ended.
    pub(super) permit: ConnectionPermit,
}

/// Thread that accepts client connections.
pub(super) struct Acceptor {
    pub(super) thread: ArbiterHandle,
    /// Dropping it closes the listening sockets and stops the thread.
    stop: Option<oneshot::Sender<()>>,
    /// Receives the result when accepting ends.
    ended: oneshot::Receiver<io::Result<()>>,
}

impl Acceptor {
    /// Accepts from `listeners` while `connections` has permits.
    ///
    /// The `workers` get the connections in turn.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(super) fn start(
        listeners: Vec<Listener>,
        workers: Vec<UnboundedSender<Accepted>>,
        connections: ClientConnections,
    ) -> io::Result<Self> {
        let thread = Arbiter::try_new()?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        thread.spawn_fn(move || {
            actix_rt::spawn(async move {
                let dispatch = Dispatch {
                    workers,
                    next: Cell::new(0),
                    connections,
                };
                // The receiver is dropped only when the process ends.
                let _ignored = end.send(dispatch.accept_from_all(listeners, stopped).await);
                Arbiter::current().stop();
            });
        });
        Ok(Self {
            thread: thread.handle(),
            stop: Some(stop),
            ended,
        })
    }

    /// Closes the listening sockets.
    ///
    /// From then on, connections are refused. Connections in the kernel's queue are passed to a
    /// worker, except those of an inherited socket, which wait for the next process.
    pub(super) async fn close(&mut self) {
        self.stop = None;
        // If accepting had already failed, there is nothing to close.
        let _failed = (&mut self.ended).await;
    }

    /// Waits until accepting fails, and returns the cause.
    pub(super) async fn failure(&mut self) -> io::Error {
        match (&mut self.ended).await {
            Ok(Err(error)) => error,
            _ => io::Error::other("the accepting thread has ended"),
        }
    }
}

/// Passes connections to the workers.
struct Dispatch {
    /// Channels to the workers.
    workers: Vec<UnboundedSender<Accepted>>,
    /// Index of the worker that gets the next connection.
    next: Cell<usize>,
    /// Permits of client connections.
    connections: ClientConnections,
}

impl Dispatch {
    /// Accepts from all sockets until one fails or a stop is requested.
    async fn accept_from_all(
        &self,
        listeners: Vec<Listener>,
        stopped: oneshot::Receiver<()>,
    ) -> io::Result<()> {
        let listeners = listeners.into_iter().map(register);
        let listeners = listeners.collect::<io::Result<Vec<_>>>()?;
        tokio::select! {
            _never = join_all(listeners.iter().map(|listener| self.accept_from(listener))) => {}
            _stopped = stopped => {}
        }
        for listener in listeners.iter().map(AsyncFd::get_ref) {
            if !listener.is_inherited {
                self.accept_waiting(listener);
            }
        }
        Ok(())
    }

    /// Accepts from one socket. Never ends.
    async fn accept_from(&self, listener: &AsyncFd<Listener>) -> Infallible {
        let mut is_failing = false;
        loop {
            let Ok(mut ready) = listener.readable().await else {
                // The thread is ending.
                return pending().await;
            };
            // Take the permit only after a client is waiting: then the last permit goes to a socket
            // that has a client.
            let Some(permit) = self.connections.permit().await else {
                // The process is ending.
                return pending().await;
            };
            match ready.try_io(|listener| self.accept_one(listener.get_ref(), permit)) {
                // The failure of one connection says nothing of the next one.
                Ok(Ok(is_accepted)) => is_failing = is_failing && !is_accepted,
                Ok(Err(error)) => {
                    if lacks_descriptor(&error) {
                        DESCRIPTOR_WAITS.add(DescriptorWait::Client, 1);
                    }
                    if !is_failing {
                        tracing::error!(%error, retry_every = ?RETRY_EVERY, "accepting connections failed");
                    }
                    is_failing = true;
                    sleep(RETRY_EVERY).await;
                }
                Err(_would_block) => {}
            }
        }
    }

    /// Accepts the connections in the kernel's queue, while there are permits.
    fn accept_waiting(&self, listener: &Listener) {
        // Bounded, so that clients that connect meanwhile do not prolong it.
        for _ in 0..=BACKLOG {
            let permit = self.connections.permit_now();
            let accepted = permit.map(|permit| self.accept_one(listener, permit));
            if !matches!(accepted, Some(Ok(_))) {
                return;
            }
        }
    }

    /// Accepts a connection, and sends it to the next worker.
    ///
    /// Drops `permit` and returns `false` if only this connection has failed.
    fn accept_one(&self, listener: &Listener, permit: ConnectionPermit) -> io::Result<bool> {
        match listener.accept() {
            Ok(stream) => self.hand_over(Accepted {
                stream,
                listener: listener.index,
                permit,
            }),
            Err(error) if concerns_one_connection(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Sends a connection to the next worker.
    fn hand_over(&self, accepted: Accepted) {
        let next = self.next.get();
        self.next.set((next + 1) % self.workers.len().max(1));
        if let Some(worker) = self.workers.get(next) {
            // Sending cannot fail while the worker runs: the worker ends only after this end of the
            // channel is dropped and its last connection has ended.
            let _ignored = worker.send(accepted);
        }
    }
}

/// Registers a socket with the event loop.
fn register(listener: Listener) -> io::Result<AsyncFd<Listener>> {
    // The unsafe successor requires that the descriptor stay the same while registered. A
    // `Listener` owns its descriptor and never changes it.
    #[expect(deprecated)]
    AsyncFd::with_interest(listener, Interest::READABLE)
}

/// Returns whether accept(2) failed because of one connection only: the next call may succeed.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::CONNABORTED
                | Errno::INTR
                | Errno::PERM
                | Errno::PROTO
                | Errno::NOPROTOOPT
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::NONET
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
        )
    )
}
