//! A haproxy on its own port.

use std::fs;
use std::net::SocketAddr;

use tempfile::TempDir;

use super::running::{Running, command};
use crate::support::free_address;

/// A real haproxy on its own port.
#[derive(Debug)]
pub struct Haproxy {
    pub address: SocketAddr,
    _process: Running,
    _folder: TempDir,
}

impl Haproxy {
    /// Starts haproxy in front of `origin`. `more`: further lines of its only section.
    pub fn before(origin: SocketAddr, more: &str) -> Self {
        let address = free_address();
        Self::start(address, &text(origin, address, more))
    }

    /// Starts haproxy in front of `server`, passing connections unchanged.
    ///
    /// `options`: options of the line that names the server, perhaps with further lines.
    pub fn relaying(server: SocketAddr, options: &str) -> Self {
        let address = free_address();
        let text = format!(
            "
defaults
    mode tcp
    timeout connect 1s
    timeout client 10s
    timeout server 10s
listen front
    bind {address}
    server one {server} {options}
"
        );
        Self::start(address, &text)
    }

    fn start(address: SocketAddr, text: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, text).expect("a file");
        let mut haproxy = command("haproxy");
        haproxy.args(["-q", "-db", "-f"]).arg(file);
        Self {
            address,
            _process: Running::listening(&mut haproxy, address),
            _folder: folder,
        }
    }
}

fn text(origin: SocketAddr, address: SocketAddr, more: &str) -> String {
    format!(
        "
global
    maxconn 1000
defaults
    mode http
    option abortonclose
    retries 1
    timeout connect 1s
    timeout client 10s
    timeout server 10s
    timeout http-keep-alive 10s
listen front
    bind {address}
    http-reuse never
{more}
    server one {origin}
"
    )
}
