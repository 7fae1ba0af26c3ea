//! `drip check`: is this file right, and what does it come to?

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::config;
use crate::http::downstream::Certificates;

/// Prints the settings that `file` makes, or every problem with it.
#[must_use]
pub fn check(file: &Path) -> ExitCode {
    match config::load(file) {
        Ok(settings) => {
            if let Some(Err(error)) = settings.server.tls.as_ref().map(Certificates::load) {
                eprintln!("{}: server.tls: {error}", file.display());
                return ExitCode::FAILURE;
            }
            // Whoever reads the output may have seen enough.
            let written = io::stdout().write_all(config::show(&settings).as_bytes());
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
