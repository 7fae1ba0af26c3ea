use std::io;
use std::net::SocketAddr;
use std::path::Path;

use crate::demo::addresses;
use crate::demo::own_file::OwnFile;

/// The line that the second part adds to the file.
pub(super) const SHARE: &str = "share = \"per_client\"";

/// The pace of the gate.
pub(super) const RATE: &str = "50r/s";

/// Longest wait at the gate.
pub(super) const QUEUE_TIMEOUT: &str = "2s";

/// The scene's configuration file.
#[derive(Debug)]
pub(super) struct SceneFile {
    file: OwnFile,
    /// Of the gateway, its admin port, and the origin.
    addresses: [SocketAddr; 3],
}

impl SceneFile {
    /// Writes the file of the first part, with free ports.
    pub(super) fn create() -> io::Result<Self> {
        let addresses = addresses::free()?;
        let file = OwnFile::create(&text(addresses, ""))?;
        Ok(Self { file, addresses })
    }

    /// Saves the file with `share`, as a user does while the gateway runs.
    pub(super) fn share(&self) -> io::Result<()> {
        let share = format!("{SHARE}\n");
        self.file.save(&text(self.addresses, &share))
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

fn text([gateway, admin, origin]: [SocketAddr; 3], share: &str) -> String {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use config;

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
