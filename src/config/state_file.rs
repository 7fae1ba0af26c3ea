//! Checks that a path is safe for the state file of a gateway.
//!
//! In this file a gateway saves what outlives a restart, such as the levels of buckets. The module
//! `reload_state` is about another file, the configuration.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// First bytes of each state file.
pub const STATE_MAGIC: &str = "drip-state ";

/// Reason why `path` cannot hold the state of a gateway.
///
/// The state replaces the whole file, so a file with other content is never touched.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// The path is not a regular file: a folder, a device or a pipe.
    #[error("it is not a regular file")]
    Kind,
    /// The file has other content.
    #[error("it has other content, which drip does not overwrite")]
    Foreign,
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Checks whether the state may be written to `path`.
///
/// It may if there is no file, an empty file, a state file, or a file with the first bytes of one.
/// Returns the location of the file. It differs from `path` if `path` is a symbolic link: the state
/// replaces the file, and not the link.
///
/// # Errors
///
/// Returns an error if something else is there.
pub fn check_state_file(path: &Path) -> Result<PathBuf, StateFileError> {
    let path = resolve_links(path)?;
    match fs::metadata(&path) {
        // Opening a pipe would block until its other end is opened.
        Ok(found) if !found.is_file() => return Err(StateFileError::Kind),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
        Err(error) => return Err(error.into()),
    }
    let magic_size = STATE_MAGIC.len() as u64;
    let mut start = Vec::new();
    File::open(&path)?
        .take(magic_size)
        .read_to_end(&mut start)?;
    // A file may have fewer bytes than the magic, or none.
    if STATE_MAGIC.as_bytes().starts_with(&start) {
        Ok(path)
    } else {
        Err(StateFileError::Foreign)
    }
}

/// Resolves the symbolic links of `path`, also if the final file does not exist.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    /// Same limit as in Linux.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let Ok(target) = fs::read_link(&path) else {
            return Ok(path);
        };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    Err(rustix::io::Errno::LOOP.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_state_or_nothing_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drip.state");
        assert!(check_state_file(&path).is_ok());
        for (text, is_right) in [
            ("", true),
            ("drip-state 0002 ...", true),
            ("drip-sta", true),
            ("d", true),
            ("drip-sta\n", false),
            ("[server]\nstate = \"drip.state\"\n", false),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(check_state_file(&path).is_ok(), is_right, "{text}");
        }
        for other in [folder.path(), Path::new("/dev/null")] {
            let error = check_state_file(other).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file");
        }
    }

    #[test]
    fn links_are_followed_to_a_file_that_need_not_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir(at("volume")).unwrap();
        symlink("other", at("link")).unwrap();
        symlink("volume/drip.state", at("other")).unwrap();
        symlink("missing/drip.state", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let target = at("volume/drip.state");
        assert_eq!(check_state_file(&at("link")).unwrap(), target);
        fs::write(&target, "").unwrap();
        assert_eq!(check_state_file(&at("link")).unwrap(), target);
        let missing = at("missing/drip.state");
        assert_eq!(check_state_file(&at("dangling")).unwrap(), missing);
        assert!(check_state_file(&at("loop")).is_err());
    }
}
