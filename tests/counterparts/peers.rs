//! Starts nginx and haproxy beside drip, for the tests of `tests/checklist`.

use std::any::Any;
use std::net::SocketAddr;

use crate::programs::haproxy::Haproxy;
use crate::programs::nginx::Nginx;

/// Another proxy, with its name. Dropping it ends the proxy.
pub struct Peer {
    pub who: &'static str,
    pub address: SocketAddr,
    _process: Box<dyn Any>,
}

/// Starts nginx before `origin`, with further directives of `http`.
pub fn nginx(origin: SocketAddr, http: &str) -> Option<Peer> {
    let process = Nginx::before(origin, http, &[("/", "")]);
    Some(Peer {
        who: "nginx",
        address: process.address,
        _process: Box::new(process),
    })
}

/// Starts haproxy before `origin`, with further lines of its only section.
pub fn haproxy(origin: SocketAddr, more: &str) -> Option<Peer> {
    let process = Haproxy::before(origin, more);
    Some(Peer {
        who: "haproxy",
        address: process.address,
        _process: Box::new(process),
    })
}
