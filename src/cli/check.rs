//! `drip check`: checks a file, and prints the settings that it makes.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::config::{self, LoadError, Problem};
use crate::server;

/// The arguments of `drip check`, without the file.
#[derive(Debug, Args)]
pub struct Wanted {
    /// Print the problems as JSON, on standard output
    #[arg(long)]
    json: bool,
}

/// Prints the settings that `file` makes, or every problem with it.
#[must_use]
pub fn check(file: &Path, wanted: &Wanted) -> ExitCode {
    let loaded = server::load(file);
    let is_valid = loaded.is_ok();
    let printed = match &loaded {
        _ if wanted.json => {
            let found = loaded.as_ref().err().map(LoadError::problems);
            print(&as_json(file, is_valid, &found.unwrap_or_default()))
        }
        Ok(loaded) => print(&config::show(&loaded.settings)),
        Err(problems) => {
            eprintln!("{problems}");
            Ok(())
        }
    };
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("drip: {error}");
            ExitCode::FAILURE
        }
        // The reader may close the pipe early.
        _ if is_valid => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn print(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())
}

/// What was found, for programs.
#[derive(Serialize)]
struct Found<'f> {
    file: String,
    valid: bool,
    problems: Vec<Place<'f>>,
    warnings: Vec<Place<'f>>,
}

#[derive(Serialize)]
struct Place<'f> {
    file: String,
    line: usize,
    column: usize,
    message: &'f str,
}

fn as_json(file: &Path, valid: bool, problems: &[Problem]) -> String {
    let place = |problem: &'_ Problem| Place {
        file: file.display().to_string(),
        line: problem.line,
        column: problem.column,
        message: &problem.message,
    };
    let found = Found {
        file: file.display().to_string(),
        valid,
        problems: problems.iter().map(place).collect(),
        warnings: Vec::new(),
    };
    // Texts and numbers are always JSON.
    serde_json::to_string_pretty(&found).unwrap_or_default() + "\n"
}
