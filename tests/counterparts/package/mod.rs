//! The Debian package, the tarball and the image: built by `packaging/build`, installed in a fresh root, and run as
//! their unit and their Containerfile say.

mod conffile;
mod health;
mod image;
mod journal;
mod life;
mod root;
mod unit;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// A file of the repository.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs `command` to its end, and returns what it printed. It must succeed.
fn run(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The same, whether it succeeds or not.
fn output(command: &mut Command) -> Output {
    let output = command.output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run.sh installs it"))
}

/// Builds a package of the tested program with the script, once for all tests. Returns the folder that has it.
fn build(version: &str, what: &str) -> PathBuf {
    static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("package-{version}-{what}"));
    if !built.contains(&out) {
        // That of an earlier program.
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
