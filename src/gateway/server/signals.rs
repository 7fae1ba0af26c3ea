//! Signals that the process handles: stop, reload, reopen the logs.

use std::io;

use rustix::process;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::http::gateway::Gateway;

/// Request of an operator or of the service manager, sent as a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP: reload the file.
    Reload,
    /// SIGUSR1: reopen the access log, as after a rotation.
    ReopenLogs,
}

/// Handlers of the signals.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user1: Signal,
    user2: Signal,
    /// SIGXFSZ: a file would exceed `RLIMIT_FSIZE`. Without a handler the signal would end the
    /// process. With one, the write fails, as on a full disk.
    _too_large: Signal,
}

impl Signals {
    /// Registers the handlers.
    ///
    /// # Errors
    ///
    /// The system refuses a handler.
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

    /// Waits for the next request to stop. Other signals stay for [`next`](Self::next).
    pub(crate) async fn wait_for_stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits for the next signal that has an effect.
    pub async fn next(&mut self) -> SignalRequest {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return SignalRequest::Stop,
                _ = self.interrupt.recv() => return SignalRequest::Stop,
                _ = self.hang_up.recv() => return SignalRequest::Reload,
                _ = self.user1.recv() => return SignalRequest::ReopenLogs,
                // Without a handler the signal would end the process.
                _ = self.user2.recv() => tracing::info!("SIGUSR2 has no effect"),
            }
        }
    }
}

/// Reopens the access log of `gateway`, so that a new file replaces a renamed one.
///
/// If that fails, the lines go to the old file.
pub(super) fn reopen_access_log(gateway: &Gateway) {
    let Some(log) = gateway.access_log() else {
        return;
    };
    match log.reopen(gateway.settings()) {
        Ok(true) => tracing::info!("the access log was reopened"),
        Ok(false) => {}
        Err(error) => tracing::error!(%error, "the access log cannot be reopened"),
    }
}
