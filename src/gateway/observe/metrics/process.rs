//! Metrics of the process: lost log lines, restarts, waits for resources, handshakes, reloads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};

use ::metrics::{Counter, counter, gauge};

use super::label::{CountBy, labels};
use super::{
    ACTOR_RESTARTS, LOG_DROPPED, RELOAD_SUCCESSFUL, RELOAD_TIME, RELOADS, RESTART_NEEDED,
    STDERR_DROPPED,
};
use crate::time::clock;

/// Result of a reload whose file is in force.
const SUCCESS: &str = "success";
/// Result of a reload whose file has an error.
const FAILURE: &str = "failure";

/// Counts a line of the access log that was not written.
pub fn count_dropped_line() {
    dropped_lines().increment(1);
}

/// Returns the counter of dropped lines of the access log.
///
/// It is looked up once, because lines are dropped while the gateway is busy.
fn dropped_lines() -> &'static Counter {
    static DROPPED: OnceLock<Counter> = OnceLock::new();
    DROPPED.get_or_init(|| counter!(LOG_DROPPED))
}

/// Counts a line of the log on standard error that was not written.
pub fn count_dropped_stderr_line() {
    counter!(STDERR_DROPPED).increment(1);
}

/// Creates the series of dropped lines, also while they are zero.
pub(super) fn show_dropped() {
    dropped_lines().increment(0);
    counter!(STDERR_DROPPED).increment(0);
}

labels! {
    /// Kind of actor whose restarts are counted.
    pub enum ActorKind {
        /// A key's actor.
        Key = "key",
        /// A zone's supervisor on one worker.
        Supervisor = "supervisor",
    }
}

/// Counts an actor that panicked and starts again.
pub fn count_restart(kind: ActorKind) {
    counter!(ACTOR_RESTARTS, "kind" => kind.label()).increment(1);
}

/// Creates the series of all kinds, also while they are zero.
pub(super) fn show_restarts() {
    for kind in ActorKind::ALL {
        counter!(ACTOR_RESTARTS, "kind" => kind.label()).absolute(0);
    }
}

/// Locks the count of restarts for a test in which supervisors panic: all tests share the count.
#[cfg(test)]
pub(crate) fn count_alone() -> std::sync::MutexGuard<'static, ()> {
    static COUNTED: std::sync::Mutex<()> = std::sync::Mutex::new(());
    COUNTED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

labels! {
    /// Waiter for a file descriptor.
    pub enum DescriptorWait {
        /// A request, for its connection to an origin.
        Origin = "origin",
        /// A request that waited for all of `connect_timeout`: it gets 503.
        InVain = "in_vain",
        /// A new client that could not be accepted.
        Client = "client",
    }
}

labels! {
    /// Waiter for a local port.
    pub enum LocalPortWait {
        /// A request, for its connection to an origin.
        Origin = "origin",
        /// A request that waited for all of `connect_timeout`: it gets 503.
        InVain = "in_vain",
    }
}

/// Waits for file descriptors so far.
pub static DESCRIPTOR_WAITS: LazyLock<CountBy<DescriptorWait>> = LazyLock::new(CountBy::default);
/// Waits for local ports so far.
pub static LOCAL_PORT_WAITS: LazyLock<CountBy<LocalPortWait>> = LazyLock::new(CountBy::default);

labels! {
    /// Reason why a TLS handshake with a client failed.
    pub enum HandshakeFailure {
        /// The client reports that the gateway's certificate has expired.
        Expired = "expired",
        /// The client does not trust the gateway's certificate for another reason.
        Untrusted = "untrusted",
        /// The client shows no certificate, and needs one.
        NoCertificate = "no_certificate",
        /// The client's certificate is refused.
        ClientCertificate = "client_certificate",
        /// The client and the gateway have no version, cipher or protocol in common.
        Incompatible = "incompatible",
        /// The server name that the client sends is no DNS name.
        ServerName = "server_name",
        /// Any other reason: mostly clients that speak no TLS, and scans.
        Other = "other",
    }
}

/// Successful handshakes so far.
static DONE: AtomicU64 = AtomicU64::new(0);
/// Failed handshakes so far.
static FAILED: LazyLock<CountBy<HandshakeFailure>> = LazyLock::new(CountBy::default);

/// Counts a successful handshake.
pub fn count_handshake() {
    DONE.fetch_add(1, Ordering::Relaxed);
}

/// Counts a failed handshake.
pub fn count_handshake_failure(why: HandshakeFailure) {
    FAILED.add(why, 1);
}

/// Returns the number of successful handshakes so far.
pub fn handshakes() -> u64 {
    DONE.load(Ordering::Relaxed)
}

/// Returns the number of failed handshakes so far, by reason.
pub fn handshake_failures() -> &'static CountBy<HandshakeFailure> {
    &FAILED
}

/// Creates the series of reloads, also while they are zero.
pub(super) fn show_reloads() {
    for result in [SUCCESS, FAILURE] {
        counter!(RELOADS, "result" => result).increment(0);
    }
    gauge!(RESTART_NEEDED).set(0.0);
}

/// Records that the file was read when the process started.
pub fn note_load() {
    gauge!(RELOAD_SUCCESSFUL).set(1.0);
    gauge!(RELOAD_TIME).set(clock::wall().as_nanos() as f64 / 1e9);
}

/// Records that the changed file is in force.
///
/// `need_restart`: number of settings in it that take effect only after a restart.
pub fn note_reload(need_restart: usize) {
    counter!(RELOADS, "result" => SUCCESS).increment(1);
    gauge!(RESTART_NEEDED).set(need_restart as f64);
    note_load();
}

/// Records that the changed file has an error.
pub fn note_failed_reload() {
    counter!(RELOADS, "result" => FAILURE).increment(1);
    gauge!(RELOAD_SUCCESSFUL).set(0.0);
}
