//! Accepts clients and hands them to the workers.
//!
//! actix-server (2.10 was read) would do so too, but its acceptor does not tell when it has paused, and
//! holds its sockets until the workers end. So a stop had to shut the sockets down under it, which it
//! logged as errors, and which reset those who had connected and were not accepted yet.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::Arbiter;
use futures_util::future::join_all;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::sleep;

use super::listeners::{BACKLOG, Listener, Stream};

/// Pause before the next try where the system has no descriptor or memory for a connection.
const BACK_OFF: Duration = Duration::from_millis(500);

/// A connection for a worker.
pub(super) struct Accepted {
    pub(super) stream: Stream,
    /// Held until the connection has ended.
    pub(super) permit: OwnedSemaphorePermit,
}

/// The thread that accepts clients.
#[derive(Debug)]
pub(super) struct Acceptor {
    /// Dropped to stop it.
    stop: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<io::Result<()>>,
}

impl Acceptor {
    /// Accepts from `listeners` while `capacity` has permits, for each of `workers` in turn.
    ///
    /// # Errors
    ///
    /// Where no thread can be started.
    pub(super) fn start(
        listeners: Vec<Listener>,
        workers: Vec<UnboundedSender<Accepted>>,
        capacity: Arc<Semaphore>,
    ) -> io::Result<Self> {
        let thread = Arbiter::try_new()?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        thread.spawn_fn(move || {
            actix_rt::spawn(async move {
                let dispatch = Dispatch {
                    workers,
                    next: Cell::new(0),
                    capacity,
                };
                // Nobody is there to be told only where the process ends anyway.
                let _gone = end.send(dispatch.accept_from_all(listeners, stopped).await);
                Arbiter::current().stop();
            });
        });
        Ok(Self {
            stop: Some(stop),
            ended,
        })
    }

    /// Closes the listening sockets. From then on connections are refused; those made before have been
    /// handed to a worker. At a socket that was handed down they wait for the next process.
    ///
    /// # Errors
    ///
    /// Where accepting had failed before.
    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.stop = None;
        self.end().await
    }

    /// Completes when no connections are accepted any more; to be awaited once.
    ///
    /// # Errors
    ///
    /// Why that is so, where nobody asked for it.
    pub(super) async fn end(&mut self) -> io::Result<()> {
        let ended = (&mut self.ended).await;
        ended.unwrap_or_else(|_| Err(io::Error::other("the thread that accepts clients is gone")))
    }
}

/// Hands connections to the workers.
struct Dispatch {
    workers: Vec<UnboundedSender<Accepted>>,
    /// Whose turn it is.
    next: Cell<usize>,
    /// A permit for each connection that may be open.
    capacity: Arc<Semaphore>,
}

impl Dispatch {
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
            if !listener.is_inherited() {
                self.accept_waiting(listener);
            }
        }
        Ok(())
    }

    async fn accept_from(&self, listener: &AsyncFd<Listener>) -> Infallible {
        let mut failing = false;
        loop {
            let Ok(mut ready) = listener.readable().await else {
                // The thread ends.
                return pending().await;
            };
            // Not before a client is there: the last permit is for whichever socket has one.
            let Ok(permit) = Arc::clone(&self.capacity).acquire_owned().await else {
                return pending().await;
            };
            match ready.try_io(|listener| listener.get_ref().accept()) {
                Ok(Ok(stream)) => {
                    failing = false;
                    self.hand_over(Accepted { stream, permit });
                }
                Ok(Err(error)) if is_of_one_connection(&error) => {}
                Ok(Err(error)) => {
                    if !failing {
                        tracing::error!(%error, retry_every = ?BACK_OFF, "connections cannot be accepted");
                    }
                    failing = true;
                    drop(permit);
                    sleep(BACK_OFF).await;
                }
                Err(_would_block) => {}
            }
        }
    }

    /// Accepts what waits in the kernel, as far as there is room for it.
    fn accept_waiting(&self, listener: &Listener) {
        // Those who go on coming meanwhile are not waited for.
        for _ in 0..=BACKLOG {
            let Ok(permit) = Arc::clone(&self.capacity).try_acquire_owned() else {
                return;
            };
            match listener.accept() {
                Ok(stream) => self.hand_over(Accepted { stream, permit }),
                Err(error) if is_of_one_connection(&error) => {}
                Err(_) => return,
            }
        }
    }

    fn hand_over(&self, accepted: Accepted) {
        let turn = self.next.get();
        self.next.set((turn + 1) % self.workers.len().max(1));
        if let Some(worker) = self.workers.get(turn) {
            // A worker ends after its last connection, and only once this end of the channel is gone.
            let _gone = worker.send(accepted);
        }
    }
}

fn watched(listener: Listener) -> io::Result<AsyncFd<Listener>> {
    // The unsafe successor asks that the descriptor stay the same while registered. A `Listener` owns its
    // own and never changes it.
    #[expect(deprecated)]
    AsyncFd::with_interest(listener, Interest::READABLE)
}

/// Whether accept(2) failed because of the one connection that it took, so that the next try may do.
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
