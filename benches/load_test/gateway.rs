//! The release build of the gateway, with a file that can be changed.

use std::fs;
use std::io;
use std::net::SocketAddr;

use tempfile::TempDir;

use crate::support::placement::free_address;
use crate::support::process::Running;

/// A running gateway. It stops when this is dropped.
#[derive(Debug)]
pub struct Gateway {
    pub address: SocketAddr,
    origin: SocketAddr,
    folder: TempDir,
    _running: Running,
}

impl Gateway {
    /// Starts it before `origin`, with these zones and routes.
    pub fn start(origin: SocketAddr, rest: &str) -> io::Result<Self> {
        let (folder, address) = (TempDir::new()?, free_address());
        write(&folder, address, origin, rest)?;
        let running = Running::drip(folder.path(), address)?;
        Ok(Self {
            address,
            origin,
            folder,
            _running: running,
        })
    }

    /// Saves other zones and routes. The gateway then reloads them.
    pub fn save(&self, rest: &str) -> io::Result<()> {
        write(&self.folder, self.address, self.origin, rest)
    }
}

fn write(folder: &TempDir, address: SocketAddr, origin: SocketAddr, rest: &str) -> io::Result<()> {
    let text = format!(
        r#"
[server]
listen = ["{address}"]
admin = "off"

[origins.app]
servers = ["http://{origin}"]
{rest}"#
    );
    fs::write(folder.path().join("gateway.toml"), text)
}
