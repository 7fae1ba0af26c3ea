//! `drip check`: is this file right, and what does it come to?

use std::path::Path;
use std::process::ExitCode;

use crate::config;

/// Prints the settings that `file` makes, or every problem with it.
#[must_use]
pub fn check(file: &Path) -> ExitCode {
    match config::load(file) {
        Ok(settings) => {
            print!("{}", config::show(&settings));
            ExitCode::SUCCESS
        }
        Err(problems) => {
            eprintln!("{problems}");
            ExitCode::FAILURE
        }
    }
}
