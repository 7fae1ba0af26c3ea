use std::net::SocketAddr;

use crate::http::downstream::ProxyHeaderError;
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Logs why a connection that must begin with a header of the PROXY protocol is closed without it.
///
/// Each kind of reason is logged once a second at most. Connections that send nothing are those of
/// health checks, and are seen at level `debug`.
pub(super) fn tell_no_header(peer: Option<SocketAddr>, error: &ProxyHeaderError) {
    static REFUSALS: Throttle = Throttle::new();
    static OTHERS: Throttle = Throttle::new();
    let now = clock::now();
    // A peer without an address is at the other end of a socket file.
    let peer = peer.map_or_else(|| "unix:".to_owned(), |address| address.to_string());
    match error {
        ProxyHeaderError::Unsent | ProxyHeaderError::Connection(_) => {
            if let Some(hidden) = OTHERS.show(now) {
                tracing::debug!(peer, %error, hidden, "a connection ended before the PROXY protocol");
            }
        }
        error => {
            if let Some(hidden) = REFUSALS.show(now) {
                tracing::warn!(
                    peer,
                    %error,
                    hidden,
                    "a connection is closed, as it does not begin with a valid header of the PROXY \
                     protocol; make the peer send it, or take the peer out of proxy_protocol"
                );
            }
        }
    }
}
