//! No file descriptor for a new connection to a server.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use tokio::time::sleep;

use super::dial::within;
use super::error::OriginError;
use crate::config::ServerUrl;
use crate::observe::metrics::{DescriptorWait, count_descriptor_wait};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Interval between attempts while there is none.
const RETRY: Duration = Duration::from_millis(20);

/// How many requests wait for a descriptor, on all workers.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// A request that waits for a descriptor.
struct Waiting;

impl Waiting {
    fn begin() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        count_descriptor_wait(DescriptorWait::Origin);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a request waits for a descriptor. Then no idle connection should keep one.
pub(super) fn is_short() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// Opens a connection to `server` by `open`, for its `connect_timeout` at most.
///
/// Tries again while there is no descriptor for it. That is not the server's failure: another
/// server could not be asked either.
pub(super) async fn open_within<T>(
    connect_timeout: Duration,
    server: &ServerUrl,
    open: impl AsyncFn() -> io::Result<T>,
) -> Result<T, OriginError> {
    let is_short = Cell::new(false);
    let opened = within(connect_timeout, server, wait_out(&is_short, open)).await;
    opened.map_err(|error| {
        if !is_short.get() {
            return error;
        }
        count_descriptor_wait(DescriptorWait::InVain);
        OriginError::NoDescriptor {
            server: server.to_string(),
            limit: connect_timeout,
        }
    })
}

/// `is_short`: whether there is none now.
async fn wait_out<T>(
    is_short: &Cell<bool>,
    open: impl AsyncFn() -> io::Result<T>,
) -> io::Result<T> {
    let mut waiting = None;
    loop {
        match open().await {
            Err(error) if is_shortage(&error) => {
                tell(&error);
                is_short.set(true);
                waiting.get_or_insert_with(Waiting::begin);
                sleep(RETRY).await;
            }
            done => {
                is_short.set(false);
                return done;
            }
        }
    }
}

/// Whether a connection failed because there is no descriptor for it.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    match Errno::from_io_error(error) {
        Some(errno) => matches!(errno, Errno::MFILE | Errno::NFILE),
        // A lookup of a name says only that it failed.
        None => error.kind() != io::ErrorKind::InvalidData && none_is_left(),
    }
}

/// Whether no file can be opened now, because there is no descriptor for it.
pub(super) fn none_is_left() -> bool {
    let opened = File::open("/dev/null");
    let error = opened.as_ref().err().and_then(Errno::from_io_error);
    matches!(error, Some(Errno::MFILE | Errno::NFILE))
}

fn tell(error: &io::Error) {
    static TOLD: Throttle = Throttle::new();
    if let Some(hidden) = TOLD.show(clock::now()) {
        tracing::error!(%error, hidden, "a request waits for a file descriptor for its connection to the origin");
    }
}
