//! A folder into which packages are installed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::{build, output};
use crate::support::files_below;

/// A root folder into which packages are installed. None of its programs runs in it.
#[derive(Debug)]
pub(super) struct Root {
    folder: TempDir,
}

impl Root {
    /// Creates an empty root, with the database of dpkg.
    pub(super) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let database = folder.path().join("root/var/lib/dpkg");
        for part in ["info", "updates", "triggers"] {
            fs::create_dir_all(database.join(part)).expect("a folder");
        }
        fs::create_dir_all(folder.path().join("root/etc")).expect("a folder");
        for file in ["status", "available"] {
            fs::write(database.join(file), "").expect("a file");
        }
        Self { folder }
    }

    /// Returns the outside path of `path` in the root.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder
            .path()
            .join("root")
            .join(path.trim_start_matches('/'))
    }

    pub(super) fn read(&self, path: &str) -> String {
        let text = fs::read_to_string(self.path(path));
        text.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Changes the paths of a command or a file to paths outside of the root.
    pub(super) fn outside(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for folder in ["/usr/bin/drip", "/etc/drip/", "/var/log/drip/"] {
            let path = self.path(folder).display().to_string();
            let path = if folder.ends_with('/') && !path.ends_with('/') {
                path + "/"
            } else {
                path
            };
            text = text.replace(folder, &path);
        }
        text
    }

    /// Builds the package of this version, and installs it or upgrades to it.
    pub(super) fn install(&self, version: &str) {
        let out = build(version, "deb");
        let packages = files_below(&out);
        let [package] = &packages[..] else {
            panic!("{packages:?}")
        };
        self.dpkg(&["--install", &package.display().to_string()]);
    }

    /// Runs dpkg, and the scripts of the package, on this root. Does not need root's rights.
    pub(super) fn dpkg(&self, arguments: &[&str]) -> String {
        let output = self.try_dpkg(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs dpkg, whether it succeeds or not. Its questions get no answer.
    pub(super) fn try_dpkg(&self, arguments: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        output(
            Command::new("fakeroot")
                .stdin(Stdio::null())
                .arg("dpkg")
                .arg(format!("--root={}", self.path("").display()))
                // The dependencies of the package are outside.
                .args(["--force-script-chrootless", "--force-depends"])
                .args(arguments)
                .env("PATH", format!("{path}:/usr/sbin:/sbin"))
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    }
}
