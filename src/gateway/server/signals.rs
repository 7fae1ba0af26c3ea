//! The signals that the process handles.

use std::io;

use rustix::process;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A request that an operator sends to the process as a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP: read the file now.
    Reload,
    /// SIGUSR1: open the access log again, as after a rotation.
    ReopenLogs,
    /// SIGUSR2, which has no effect. Without a handler it would end the process.
    Ignored,
}

/// The signals that the process handles.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user1: Signal,
    user2: Signal,
    /// SIGXFSZ: a file would grow past `RLIMIT_FSIZE`. Without a handler it would end the process;
    /// with one, the write fails, as on a full disk.
    _too_large: Signal,
}

impl Signals {
    /// Registers the handlers of the signals.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
            _too_large: signal(SignalKind::from_raw(process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Completes at the next request to stop; the others stay for [`next`](Self::next).
    pub(crate) async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hang_up.recv() => SignalRequest::Reload,
            _ = self.user1.recv() => SignalRequest::ReopenLogs,
            _ = self.user2.recv() => SignalRequest::Ignored,
        }
    }
}
