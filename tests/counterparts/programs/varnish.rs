//! A Varnish on its own port.

use std::net::SocketAddr;
use std::process::Stdio;

use tempfile::TempDir;

use super::running::{Running, command};
use crate::support::free_address;

/// A Varnish with default rules, and no time beyond the lifetime of a response.
pub struct Varnish {
    pub address: SocketAddr,
    // Its worker ends when the pipe of this process is closed.
    _process: Running,
    _folder: TempDir,
}

impl Varnish {
    /// Starts it in front of `origin`. Responses without a lifetime have `ttl` seconds.
    pub fn start(origin: SocketAddr, ttl: u32) -> Self {
        let (address, folder) = (free_address(), TempDir::new().expect("a folder"));
        let mut varnish = command("varnishd");
        varnish
            .args(["-F", "-j", "none", "-s", "malloc,16m"])
            .args(["-a", &address.to_string(), "-b", &origin.to_string()])
            .arg("-n")
            .arg(folder.path().join("varnish"))
            .args(["-p", &format!("default_ttl={ttl}")])
            .args(["-p", "default_grace=0", "-p", "default_keep=0"])
            .args(["-p", "shortlived=0", "-p", "thread_pool_min=20"])
            .stderr(Stdio::null());
        Self {
            address,
            _process: Running::listening(&mut varnish, address),
            _folder: folder,
        }
    }
}
