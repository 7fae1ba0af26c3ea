//! `drip check`: checks a file, and prints the settings that it makes.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::config;
use crate::server;

/// Prints the settings that `file` makes, or every problem with it.
#[must_use]
pub fn check(file: &Path) -> ExitCode {
    match server::load(file) {
        Ok(loaded) => {
            // The reader may close the pipe early.
            let written = io::stdout().write_all(config::show(&loaded.settings).as_bytes());
            match written {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    eprintln!("drip: {error}");
                    ExitCode::FAILURE
                }
                _ => ExitCode::SUCCESS,
            }
        }
        Err(problems) => {
            eprintln!("{problems}");
            ExitCode::FAILURE
        }
    }
}
