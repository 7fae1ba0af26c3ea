//! The configuration file that the demo writes for its gateway.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process;

use tempfile::TempDir;

/// A configuration file in a temporary folder. Dropping the value removes the folder.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// Kept because its drop removes the folder.
    _folder: TempDir,
    pub(super) addresses: Addresses,
}

/// Addresses of the demo's servers, on 127.0.0.1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) gateway: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) origin: SocketAddr,
}

impl ConfigFile {
    /// Creates the file. `text`: makes its content for the addresses that were found.
    pub(super) fn create(text: impl FnOnce(&Addresses) -> String) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("drip-demo-").tempdir()?;
        let file = Self {
            path: folder.path().join("gateway.toml"),
            _folder: folder,
            addresses: Addresses::find_free()?,
        };
        file.save(&text(&file.addresses))?;
        Ok(file)
    }

    /// Replaces the text, as a user who saves the file does.
    pub(super) fn save(&self, text: &str) -> io::Result<()> {
        fs::write(&self.path, text)
    }
}

impl Addresses {
    /// Finds three unused ports of 127.0.0.1.
    ///
    /// The ports are below those that the kernel gives to outgoing connections, so no client takes
    /// one before the gateway listens on it. The first port tried depends on the process, so two
    /// demos that start together do not try the same ports.
    fn find_free() -> io::Result<Self> {
        const FIRST_PORT: u16 = 20_000;
        const PORTS: u16 = 10_000;
        // The factor keeps processes with consecutive ids some ports apart.
        let start = u16::try_from(process::id() * 7 % u32::from(PORTS)).unwrap_or_default();
        let ports = (0..PORTS).map(|nth| FIRST_PORT + (start + nth) % PORTS);
        let addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut free = addresses.filter(|address| TcpListener::bind(address).is_ok());
        let mut next_free = || {
            let none = || io::Error::new(io::ErrorKind::AddrInUse, "no free ports on 127.0.0.1");
            free.next().ok_or_else(none)
        };
        Ok(Self {
            gateway: next_free()?,
            admin: next_free()?,
            origin: next_free()?,
        })
    }
}
