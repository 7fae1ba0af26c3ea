//! Tests of the Debian package, the tarball and the image.
//!
//! `packaging/build` builds them. The tests install them in a new root, and run them as their unit
//! and
//! their Containerfile say.

mod conffile;
mod health;
mod image;
mod journal;
mod life;
mod release;
mod root;
mod unit;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Returns the path of a file of the repository.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs `command` to its end, and returns its output. It must succeed.
fn run(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs `command` to its end, whether it succeeds or not.
fn output(command: &mut Command) -> Output {
    let output = command.output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run.sh installs it"))
}

/// Builds a package of the tested program, once for all tests. Returns its folder.
fn build(version: &str, what: &str) -> PathBuf {
    static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("package-{version}-{what}"));
    if !built.contains(&out) {
        // Removes the package of an earlier program.
        let _absent = fs::remove_dir_all(&out);
        let binary = env!("CARGO_BIN_EXE_drip");
        run(Command::new(source("packaging/build"))
            .args(["--binary", binary, "--version", version, "--out"])
            .arg(&out)
            .arg(what));
        built.insert(out.clone());
    }
    out
}
