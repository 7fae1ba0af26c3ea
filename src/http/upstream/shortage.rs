//! No file descriptor for a new connection to a server.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use tokio::time::sleep;

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

/// Opens a connection by `open`, and tries again while there is no descriptor for it.
///
/// That is not the server's failure: another server could not be asked either.
pub(super) async fn wait_out<T>(open: impl AsyncFn() -> io::Result<T>) -> io::Result<T> {
    let mut waiting = None;
    loop {
        match open().await {
            Err(error) if is_shortage(&error) => {
                tell(&error);
                waiting.get_or_insert_with(Waiting::begin);
                sleep(RETRY).await;
            }
            done => return done,
        }
    }
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

fn tell(error: &io::Error) {
    static TOLD: Throttle = Throttle::new();
    if let Some(hidden) = TOLD.show(clock::now()) {
        tracing::error!(%error, hidden, "a request waits for a file descriptor for its connection to the origin");
    }
}
