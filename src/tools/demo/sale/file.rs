use std::io;
use std::net::SocketAddr;
use std::path::Path;

use crate::tools::demo::own_file::OwnFile;
use crate::tools::demo::{PORTS, addresses};

/// Visitors inside at once.
pub(super) const SESSIONS: u32 = 50;

/// A visitor without a request for so long has left.
pub(super) const IDLE: &str = "2s";

/// A visitor who is called has so much time to come.
pub(super) const CLAIM: &str = "5s";

/// The scene's configuration file.
#[derive(Debug)]
pub(super) struct SaleFile {
    file: OwnFile,
    /// Of the gateway, its admin port, and the origin.
    addresses: [SocketAddr; 3],
}

impl SaleFile {
    /// Writes the file, with the ports of the examples if they are free.
    pub(super) fn create() -> io::Result<Self> {
        let addresses = addresses::free_or_other(PORTS)?;
        let file = OwnFile::create(&text(addresses))?;
        Ok(Self { file, addresses })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The address that the gateway listens on.
    pub(super) fn gateway(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The address of the live page.
    pub(super) fn admin(&self) -> SocketAddr {
        self.addresses[1]
    }
}

fn text([gateway, admin, origin]: [SocketAddr; 3]) -> String {
    format!(
        "[server]\nlisten = [\"{gateway}\"]\nadmin = \"{admin}\"\n\
         # The room keeps its secret here.\nstate = \"drip.state\"\n\n\
         [origins.shop]\nservers = [\"http://{origin}\"]\n\n\
         [origins.shop.room]\nsessions = {SESSIONS}\nidle = \"{IDLE}\"\nclaim = \"{CLAIM}\"\n\
         # All visitors of the scene have one address.\n\
         draw = \"none\"\n\n\
         [[routes]]\npath = \"/\"\norigin = \"shop\"\n\n\
         # Requests that the end of the scene cuts off are no news.\n\
         [log]\nlevel = \"error\"\n"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config;

    #[test]
    fn the_file_has_a_room() {
        let addresses = [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let file = OwnFile::create(&text(addresses)).unwrap();
        let settings = config::load(file.path()).unwrap();
        let room = settings.origins[0].room.as_ref().unwrap();
        assert_eq!(room.sessions.unwrap().get(), SESSIONS);
        assert!(room.claim.as_secs() >= 4 && room.admit.is_none());
        let path = file.path().to_owned();
        drop(file);
        assert!(fs::symlink_metadata(path).is_err());
    }
}
