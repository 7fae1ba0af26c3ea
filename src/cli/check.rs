//! `drip check`: checks a file, and prints the effective settings or the problems.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use config::{self, Problem};
use gateway::server::{self, Loaded};
use serde::Serialize;
use tools::complain::{complain, print};

/// Arguments of `drip check`, without the file.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Print the problems as JSON, on standard output
    #[arg(long)]
    json: bool,
}

/// Prints the effective settings of `file`, or every problem with it.
pub fn check(file: &Path, arguments: &CheckArguments) -> ExitCode {
    let loaded = server::load(file, false);
    let is_valid = loaded.is_ok();
    let printed = match &loaded {
        Ok(Loaded { settings, .. }) if arguments.json => {
            print(&as_json(file, true, &[], &settings.warnings))
        }
        Err(error) if arguments.json => print(&as_json(file, false, &error.problems(), &[])),
        Ok(Loaded { settings, .. }) => {
            for warning in &settings.warnings {
                complain(warning.as_warning(file));
            }
            print(&config::show(&settings.without_room_secrets()))
        }
        Err(problems) => {
            complain(problems.with_remedy());
            ExitCode::FAILURE
        }
    };
    if is_valid { printed } else { ExitCode::FAILURE }
}

/// Result of the check, for programs.
#[derive(Serialize)]
struct CheckResult<'f> {
    file: String,
    valid: bool,
    problems: Vec<Location<'f>>,
    warnings: Vec<Location<'f>>,
}

/// One problem or warning, with its location.
#[derive(Serialize)]
struct Location<'f> {
    file: String,
    line: usize,
    column: usize,
    message: &'f str,
}

impl<'f> Location<'f> {
    fn all(file: &Path, problems: &'f [Problem]) -> Vec<Self> {
        let location = |problem: &'f Problem| Self {
            file: problem.file_of(file).display().to_string(),
            // A problem without a location is shown at line 1, column 1: programs need a location.
            line: problem.line.max(1),
            column: problem.column.max(1),
            message: &problem.message,
        };
        problems.iter().map(location).collect()
    }
}

/// Returns the result of the check as JSON.
fn as_json(file: &Path, valid: bool, problems: &[Problem], warnings: &[Problem]) -> String {
    let found = CheckResult {
        file: file.display().to_string(),
        valid,
        problems: Location::all(file, problems),
        warnings: Location::all(file, warnings),
    };
    // Strings and numbers can always be written as JSON.
    serde_json::to_string_pretty(&found).unwrap_or_default() + "\n"
}
