//! Shortage of file descriptors or local ports for new connections to servers.
//!
//! A request waits for one until `connect_timeout`. A shortage is no failure of the server.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use config::ServerUrl;
use rustix::io::Errno;
use tokio::time::{sleep, timeout};

use super::error::OriginError;
use crate::observe::metrics::{DESCRIPTOR_WAITS, DescriptorWait, LOCAL_PORT_WAITS, LocalPortWait};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Resource of this host that a connection lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// A file descriptor, of the process or of the system.
    Descriptor,
    /// A port of this host towards the address of the server.
    LocalPort,
}

/// Interval between attempts during a shortage.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Number of requests that wait for a descriptor, on all workers.
static DESCRIPTOR_WAITERS: AtomicUsize = AtomicUsize::new(0);

/// Request that waits for a resource. Counted until this is dropped.
struct ResourceWaiter(Shortage);

impl ResourceWaiter {
    /// Counts a request that begins to wait.
    fn begin(shortage: Shortage) -> Self {
        match shortage {
            Shortage::Descriptor => {
                DESCRIPTOR_WAITERS.fetch_add(1, Ordering::Relaxed);
                DESCRIPTOR_WAITS.add(DescriptorWait::Origin, 1);
            }
            Shortage::LocalPort => LOCAL_PORT_WAITS.add(LocalPortWait::Origin, 1),
        }
        Self(shortage)
    }
}

impl Drop for ResourceWaiter {
    fn drop(&mut self) {
        if self.0 == Shortage::Descriptor {
            DESCRIPTOR_WAITERS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns whether a request waits for a descriptor. Idle connections should then be closed.
///
/// A missing local port does not count: closing a connection does not free its port for another
/// connection to the same server.
pub(super) fn is_short() -> bool {
    DESCRIPTOR_WAITERS.load(Ordering::Relaxed) > 0
}

/// Opens a connection to `server` by `open`, within `connect_timeout`.
///
/// Tries again during a shortage. A shortage is not the server's failure: no other server could be
/// reached either.
pub(super) async fn open_within<T>(
    connect_timeout: Duration,
    server: &ServerUrl,
    open: impl AsyncFn() -> io::Result<T>,
) -> Result<T, OriginError> {
    let (missing, limit) = (Cell::new(None), connect_timeout);
    // `None`: the timeout has ended.
    let failed = match timeout(limit, retry_in_shortage(&missing, open)).await {
        Ok(Ok(connection)) => return Ok(connection),
        Ok(Err(source)) => Some(source),
        Err(_) => None,
    };
    let server = server.to_string();
    Err(match (missing.get(), failed) {
        (Some(Shortage::Descriptor), _) => {
            DESCRIPTOR_WAITS.add(DescriptorWait::InVain, 1);
            OriginError::NoDescriptor { server, limit }
        }
        (Some(Shortage::LocalPort), _) => {
            LOCAL_PORT_WAITS.add(LocalPortWait::InVain, 1);
            OriginError::NoLocalPort { server, limit }
        }
        (None, Some(source)) => OriginError::Connect { server, source },
        (None, None) => OriginError::ConnectTimeout { server, limit },
    })
}

/// Repeats `open` during a shortage. Sets `missing` to the resource that is missing now, if any.
async fn retry_in_shortage<T>(
    missing: &Cell<Option<Shortage>>,
    open: impl AsyncFn() -> io::Result<T>,
) -> io::Result<T> {
    // Counts the wait for one resource until it is replaced or dropped.
    let mut waiter = None;
    loop {
        let opened = open().await;
        missing.set(opened.as_ref().err().and_then(missing_resource));
        let Some(shortage) = missing.get() else {
            return opened;
        };
        log_shortage(shortage, opened.as_ref().err());
        if !matches!(&waiter, Some(ResourceWaiter(known)) if *known == shortage) {
            waiter = Some(ResourceWaiter::begin(shortage));
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Returns the resource that a failed connection lacked; `None`: it failed for another reason.
pub(super) fn missing_resource(error: &io::Error) -> Option<Shortage> {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => Some(Shortage::Descriptor),
        Some(Errno::ADDRNOTAVAIL) => Some(Shortage::LocalPort),
        Some(_) => None,
        // A failed lookup of a name hides its cause. A refused certificate (`InvalidData`) is no
        // shortage.
        None => {
            let may_be_shortage = error.kind() != io::ErrorKind::InvalidData;
            (may_be_shortage && no_descriptor_is_free()).then_some(Shortage::Descriptor)
        }
    }
}

/// Returns whether no file can be opened now, for lack of a descriptor.
pub(super) fn no_descriptor_is_free() -> bool {
    File::open("/dev/null").is_err_and(|error| lacks_descriptor(&error))
}

/// Returns whether a call failed for lack of a descriptor, of the process or of the system.
pub(crate) fn lacks_descriptor(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    matches!(error, Some(Errno::MFILE | Errno::NFILE))
}

/// Logs a shortage, at most once a second for each resource.
fn log_shortage(shortage: Shortage, error: Option<&io::Error>) {
    static LOGGED: [Throttle; 2] = [Throttle::new(), Throttle::new()];
    let Some((hidden, error)) = LOGGED[shortage as usize].show(clock::now()).zip(error) else {
        return;
    };
    let message = match shortage {
        Shortage::Descriptor => {
            "a request waits for a file descriptor for its connection to the origin; raise the limit (LimitNOFILE= in systemd, ulimit -n)"
        }
        Shortage::LocalPort => {
            "a request waits for a local port for its connection to the origin: all ports of net.ipv4.ip_local_port_range are in use towards it; widen that range, or raise keep_alive of the origin"
        }
    };
    tracing::error!(%error, hidden, "{message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a connection that lacks a local port the first `failures` times.
    async fn opened(failures: u32, limit: Duration) -> Result<(), OriginError> {
        let server = ServerUrl::Unix("/run/app.sock".into());
        let left = Cell::new(failures);
        open_within(limit, &server, async || {
            match left.replace(left.get().saturating_sub(1)) {
                0 => Ok(()),
                _ => Err(Errno::ADDRNOTAVAIL.into()),
            }
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_local_port_is_waited_for_and_is_no_failure_of_the_server() {
        let limit = Duration::from_secs(1);
        assert!(opened(0, limit).await.is_ok());
        assert!(opened(9, limit).await.is_ok());
        let error = opened(u32::MAX, limit).await.unwrap_err();
        assert!(matches!(error, OriginError::NoLocalPort { .. }), "{error}");
        assert!(error.is_own() && !error.is_unreachable());
        assert_eq!((error.status(), error.retry_after()), (503, Some(limit)));
    }
}
