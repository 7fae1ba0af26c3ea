//! Accepts client connections and hands them to the workers.
//!
//! This replaces the acceptor of actix-server (2.10). That acceptor does not report when it has
//! paused, and it holds its sockets until the workers end. To stop, the gateway had to shut the
//! sockets down under it. actix-server logged that as errors, and it reset connections that the
//! kernel had queued but that were not accepted yet.

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
const BACK_OFF: Duration = Duration::from_millis(500);

/// An accepted connection for a worker.
pub(super) struct Accepted {
    /// The connection.
    pub(super) stream: AcceptedSocket,
    /// Index of its address in `listen`.
    pub(super) listener: usize,
    /// Permit of the connection, held until the connection has ended.
    pub(super) permit: ConnectionPermit,
}

/// The thread that accepts client connections.
pub(super) struct Acceptor {
    /// Thread that accepts connections.
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
    /// From then on connections are refused. Connections in the kernel's queue are passed to a
    /// worker. On an inherited socket they wait for the next process.
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
        let listeners = listeners.into_iter().map(watched);
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
        let mut failing = false;
        loop {
            let Ok(mut ready) = listener.readable().await else {
                // The thread is ending.
                return pending().await;
            };
            // Take the permit only after a client is waiting: the last permit then goes to the
            // socket that has one.
            let Some(permit) = self.connections.permit().await else {
                return pending().await;
            };
            match ready.try_io(|listener| listener.get_ref().accept()) {
                Ok(Ok(stream)) => {
                    failing = false;
                    self.hand_over(Accepted {
                        stream,
                        listener: listener.get_ref().nth,
                        permit,
                    });
                }
                Ok(Err(error)) if is_of_one_connection(&error) => {}
                Ok(Err(error)) => {
                    if lacks_descriptor(&error) {
                        DESCRIPTOR_WAITS.add(DescriptorWait::Client, 1);
                    }
                    if !failing {
                        tracing::error!(%error, retry_every = ?BACK_OFF, "accepting connections failed");
                    }
                    failing = true;
                    drop(permit);
                    sleep(BACK_OFF).await;
                }
                Err(_would_block) => {}
            }
        }
    }

    /// Accepts the connections in the kernel's queue, while there are permits.
    fn accept_waiting(&self, listener: &Listener) {
        // Bounded, so that clients that connect meanwhile do not prolong it.
        for _ in 0..=BACKLOG {
            let Some(permit) = self.connections.permit_now() else {
                return;
            };
            match listener.accept() {
                Ok(stream) => self.hand_over(Accepted {
                    stream,
                    listener: listener.nth,
                    permit,
                }),
                Err(error) if is_of_one_connection(&error) => {}
                Err(_) => return,
            }
        }
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
fn watched(listener: Listener) -> io::Result<AsyncFd<Listener>> {
    // The unsafe successor requires that the descriptor stay the same while registered. A
    // `Listener` owns its descriptor and never changes it.
    #[expect(deprecated)]
    AsyncFd::with_interest(listener, Interest::READABLE)
}

/// Returns whether accept(2) failed because of one connection only: the next call may succeed.
fn is_of_one_connection(error: &io::Error) -> bool {
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
