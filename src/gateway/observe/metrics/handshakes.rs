//! TLS handshakes with clients.

use std::sync::atomic::{AtomicU64, Ordering};

use ::metrics::counter;

use super::HANDSHAKE_FAILURES;

/// Why a TLS handshake with a client failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The client says that the gateway's certificate has expired.
    Expired,
    /// The client does not trust the gateway's certificate for another reason.
    Untrusted,
    /// The client shows no certificate, and needs one.
    NoCertificate,
    /// The client's certificate is refused.
    ClientCertificate,
    /// The client and the gateway have no version, cipher or protocol in common.
    Incompatible,
    /// The server name that the client asks for is no DNS name.
    ServerName,
    /// Any other: mostly clients that speak no TLS, and scans.
    Other,
}

static DONE: AtomicU64 = AtomicU64::new(0);
static FAILED: [AtomicU64; HandshakeFailure::ALL.len()] =
    [const { AtomicU64::new(0) }; HandshakeFailure::ALL.len()];

impl HandshakeFailure {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Expired,
        Self::Untrusted,
        Self::NoCertificate,
        Self::ClientCertificate,
        Self::Incompatible,
        Self::ServerName,
        Self::Other,
    ];

    /// The value of the label `reason`.
    fn label(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Untrusted => "untrusted",
            Self::NoCertificate => "no_certificate",
            Self::ClientCertificate => "client_certificate",
            Self::Incompatible => "incompatible",
            Self::ServerName => "server_name",
            Self::Other => "other",
        }
    }

    fn increment(self, count: u64) {
        counter!(HANDSHAKE_FAILURES, "reason" => self.label()).increment(count);
    }
}

/// Counts a handshake that succeeded.
pub fn count_handshake() {
    DONE.fetch_add(1, Ordering::Relaxed);
}

/// Counts a handshake that failed.
pub fn count_handshake_failure(why: HandshakeFailure) {
    FAILED[why as usize].fetch_add(1, Ordering::Relaxed);
    why.increment(1);
}

/// Number of handshakes so far that succeeded.
#[must_use]
pub fn handshakes() -> u64 {
    DONE.load(Ordering::Relaxed)
}

/// Number of handshakes so far that failed for this reason.
#[must_use]
pub fn handshake_failures(why: HandshakeFailure) -> u64 {
    FAILED[why as usize].load(Ordering::Relaxed)
}

/// Shows the series, also while they are zero. Only a gateway with TLS has them.
pub fn show_handshake_failures() {
    for why in HandshakeFailure::ALL {
        why.increment(0);
    }
}
