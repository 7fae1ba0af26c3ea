//! TLS handshakes with clients.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::label::{CountBy, labels};

labels! {
    /// Why a TLS handshake with a client failed.
    pub enum HandshakeFailure {
        /// The client says that the gateway's certificate has expired.
        Expired = "expired",
        /// The client does not trust the gateway's certificate for another reason.
        Untrusted = "untrusted",
        /// The client shows no certificate, and needs one.
        NoCertificate = "no_certificate",
        /// The client's certificate is refused.
        ClientCertificate = "client_certificate",
        /// The client and the gateway have no version, cipher or protocol in common.
        Incompatible = "incompatible",
        /// The server name that the client asks for is no DNS name.
        ServerName = "server_name",
        /// Any other: mostly clients that speak no TLS, and scans.
        Other = "other",
    }
}

static DONE: AtomicU64 = AtomicU64::new(0);
static FAILED: LazyLock<CountBy<HandshakeFailure>> = LazyLock::new(CountBy::default);

/// Counts a handshake that succeeded.
pub fn count_handshake() {
    DONE.fetch_add(1, Ordering::Relaxed);
}

/// Counts a handshake that failed.
pub fn count_handshake_failure(why: HandshakeFailure) {
    FAILED.add(why, 1);
}

/// Number of handshakes so far that succeeded.
pub fn handshakes() -> u64 {
    DONE.load(Ordering::Relaxed)
}

/// Number of handshakes so far that failed, by reason.
pub fn handshake_failures() -> &'static CountBy<HandshakeFailure> {
    &FAILED
}
