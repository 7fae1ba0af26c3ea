//! Placeholder for nginx and haproxy beside drip: this binary starts no other program.
//!
//! The group `haproxy` of `tests/counterparts` has a module of the same name that starts them for
//! the same tests.

use std::any::Any;
use std::net::SocketAddr;

/// Another proxy, with its name. Dropping it ends the proxy.
pub struct Peer {
    pub who: &'static str,
    pub address: SocketAddr,
    _process: Box<dyn Any>,
}

/// Starts nginx before `origin`, with further directives of `http`.
pub fn nginx(_origin: SocketAddr, _http: &str) -> Option<Peer> {
    None
}

/// Starts haproxy before `origin`, with further lines of its only section.
pub fn haproxy(_origin: SocketAddr, _more: &str) -> Option<Peer> {
    None
}
