use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process;

use tempfile::TempDir;

/// The line that the second part adds to the file.
pub(super) const SHARE: &str = "share = \"per_client\"";

/// The pace of the gate.
pub(super) const RATE: &str = "50r/s";

/// Longest wait at the gate.
pub(super) const QUEUE_TIMEOUT: &str = "2s";

/// The scene's configuration file, in a folder that is removed with this value.
#[derive(Debug)]
pub(super) struct SceneFile {
    path: PathBuf,
    addresses: Addresses,
    _folder: TempDir,
}

#[derive(Clone, Copy, Debug)]
struct Addresses {
    gateway: SocketAddr,
    admin: SocketAddr,
    origin: SocketAddr,
}

impl SceneFile {
    /// Writes the file of the first part, with free ports.
    pub(super) fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("drip-demo-").tempdir()?;
        let [gateway, admin, origin] = free_addresses()?;
        let file = Self {
            path: folder.path().join("gateway.toml"),
            addresses: Addresses {
                gateway,
                admin,
                origin,
            },
            _folder: folder,
        };
        file.save("")?;
        Ok(file)
    }

    /// Saves the file with `share`, as a user does while the gateway runs.
    pub(super) fn share(&self) -> io::Result<()> {
        self.save(&format!("{SHARE}\n"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The address that the gateway listens on.
    pub(super) fn gateway(&self) -> SocketAddr {
        self.addresses.gateway
    }

    /// The address of the live page.
    pub(super) fn admin(&self) -> SocketAddr {
        self.addresses.admin
    }

    fn save(&self, share: &str) -> io::Result<()> {
        fs::write(&self.path, text(&self.addresses, share))
    }
}

fn text(addresses: &Addresses, share: &str) -> String {
    let Addresses {
        gateway,
        admin,
        origin,
    } = addresses;
    format!(
        "[server]\nlisten = [\"{gateway}\"]\nadmin = \"{admin}\"\n\n\
         [origins.app]\nservers = [\"http://{origin}\"]\n\
         rate = \"{RATE}\"\nqueue_timeout = \"{QUEUE_TIMEOUT}\"\n{share}\n\
         # The gate shares by the key of this zone. No route limits by its rate.\n\
         [zones.per_client]\nkey = \"$remote_addr\"\nrate = \"{RATE}\"\n\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n\n\
         # Requests that the end of the scene cuts off are no news.\n\
         [log]\nlevel = \"error\"\n"
    )
}

/// Three addresses on the loopback interface that nobody listens on.
///
/// The ports are below those that the kernel gives to outgoing connections, so no client takes
/// one before it is listened on. The search begins at a port that depends on the process, so two
/// demos that start together do not try the same ports.
fn free_addresses() -> io::Result<[SocketAddr; 3]> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 10_000;
    let start = u16::try_from(process::id() * 7 % u32::from(COUNT)).unwrap_or_default();
    let ports = (0..COUNT).map(|nth| FIRST + (start + nth) % COUNT);
    let addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let free = addresses.filter(|address| TcpListener::bind(address).is_ok());
    let found: Vec<SocketAddr> = free.take(3).collect();
    <[SocketAddr; 3]>::try_from(found)
        .map_err(|_| io::Error::new(io::ErrorKind::AddrInUse, "no free ports on 127.0.0.1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn saving_adds_the_share_and_changes_nothing_else() {
        let file = SceneFile::create().unwrap();
        let (before, first) = (fs::read_to_string(file.path()).unwrap(), load(&file));
        assert_eq!(first.origins[0].share, None);
        assert_eq!(first.origins[0].rate.unwrap().to_string(), RATE);
        file.share().unwrap();
        let after = fs::read_to_string(file.path()).unwrap();
        assert_eq!(after.replace(&format!("{SHARE}\n"), ""), before);
        assert_eq!(load(&file).origins[0].share, Some(0));
        let path = file.path().to_owned();
        drop(file);
        assert!(!path.exists());
    }

    fn load(file: &SceneFile) -> config::Settings {
        config::load(file.path()).unwrap()
    }
}
