//! The gateway as it is released, on a file that can be saved anew.

use std::fs;
use std::io;
use std::net::SocketAddr;

use tempfile::TempDir;

use crate::support::place::free_address;
use crate::support::process::Running;

/// A gateway that runs until this is dropped.
#[derive(Debug)]
pub struct Gateway {
    pub address: SocketAddr,
    origin: SocketAddr,
    folder: TempDir,
    _running: Running,
}

impl Gateway {
    /// Starts it before `origin`, on these zones and routes.
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

    /// Saves other zones and routes, which then take effect.
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
