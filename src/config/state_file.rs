use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What each state file begins with.
pub const STATE_MAGIC: &str = "drip-state ";

/// Why `path` cannot have the state of a gateway.
///
/// The state replaces a file as a whole, so one with anything else in it is left alone.
#[derive(Debug, thiserror::Error)]
pub enum NoStateFile {
    /// It is a folder, a device, a pipe.
    #[error("it is no regular file")]
    Kind,
    /// It is a file of something else.
    #[error("it has something else in it, which stays as it is")]
    Foreign,
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Checks whether the state may be written to `path`: there is a state file, an empty one, the
/// beginning of one, or none.
///
/// Returns where the file is. It differs from `path` if that is a symbolic link: the state replaces
/// the file, and not the link.
///
/// # Errors
///
/// Returns an error if something else is there.
pub fn check_state_file(path: &Path) -> Result<PathBuf, NoStateFile> {
    let path = followed(path)?;
    // Opening a pipe would wait for its other end.
    let is_file = match fs::metadata(&path) {
        Ok(found) => found.is_file(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
        Err(error) => return Err(error.into()),
    };
    if !is_file {
        return Err(NoStateFile::Kind);
    }
    let most = STATE_MAGIC.len() as u64;
    let mut begin = Vec::new();
    File::open(&path)?.take(most).read_to_end(&mut begin)?;
    if STATE_MAGIC.as_bytes().starts_with(&begin) {
        Ok(path)
    } else {
        Err(NoStateFile::Foreign)
    }
}

/// Where the symbolic links of `path` lead, also to a file that is not there.
fn followed(path: &Path) -> io::Result<PathBuf> {
    /// As many as Linux follows.
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
            assert_eq!(error.to_string(), "it is no regular file");
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
