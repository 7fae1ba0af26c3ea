//! The configuration file that the demo writes for its gateway.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process;

use tempfile::TempDir;

/// A configuration file in a temporary folder. Dropping the value removes the folder.
pub(super) struct OwnFile {
    pub(super) path: PathBuf,
    _folder: TempDir,
    pub(super) addresses: Addresses,
}

/// Addresses on the loopback interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) gateway: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) origin: SocketAddr,
}

impl OwnFile {
    /// Creates the file with the text for these addresses.
    pub(super) fn create(text: impl FnOnce(&Addresses) -> String) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("drip-demo-").tempdir()?;
        let file = Self {
            path: folder.path().join("gateway.toml"),
            _folder: folder,
            addresses: Addresses::free()?,
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
    /// Returns three unused addresses.
    ///
    /// The ports are below those that the kernel gives to outgoing connections, so no client takes
    /// one before the gateway listens on it. The first port tried depends on the process, so two
    /// demos that start together do not try the same ports.
    fn free() -> io::Result<Self> {
        const FIRST: u16 = 20_000;
        const COUNT: u16 = 10_000;
        let start = u16::try_from(process::id() * 7 % u32::from(COUNT)).unwrap_or_default();
        let ports = (0..COUNT).map(|nth| FIRST + (start + nth) % COUNT);
        let addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut free = addresses.filter(|address| TcpListener::bind(address).is_ok());
        let mut next = || {
            let none = || io::Error::new(io::ErrorKind::AddrInUse, "no free ports on 127.0.0.1");
            free.next().ok_or_else(none)
        };
        Ok(Self {
            gateway: next()?,
            admin: next()?,
            origin: next()?,
        })
    }
}
