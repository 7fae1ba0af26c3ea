//! A Python with packages of `PyPI`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Returns the Python of an environment with these packages.
///
/// The environment is made once, and kept beside the build. `packages`: each as pip writes it, with
/// its version.
pub fn python_with(packages: &[&str]) -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(packages.join("-"));
    let python = folder.join("bin/python");
    let complete = folder.join("complete");
    if !complete.exists() {
        let run = |command: &mut Command| {
            let output = command.output().expect("python3");
            assert!(output.status.success(), "{command:?}: {output:?}");
        };
        run(Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder));
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet"])
            .args(packages));
        fs::write(&complete, "").expect("a file");
    }
    python
}
