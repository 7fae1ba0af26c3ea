//! `drip check`: checks a file, and prints the effective settings or the problems.

use std::path::Path;
use std::process::ExitCode;

use config::Problem;
use gateway::server::{self, Loaded};
use serde_json::{Value, json};
use tools::output::{complain, print};

/// Prints the effective settings of `file`, or every problem with it; `json`: the problems as JSON.
pub fn check(file: &Path, json: bool) -> ExitCode {
    let loaded = server::load(file, false);
    let is_valid = loaded.is_ok();
    let printed = match &loaded {
        Ok(Loaded { settings, .. }) if json => print(&as_json(file, true, &[], &settings.warnings)),
        Err(error) if json => print(&as_json(file, false, &error.problems(), &[])),
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
    // An invalid file fails the command, even if its problems could be printed as JSON.
    if is_valid { printed } else { ExitCode::FAILURE }
}

/// Returns the result of the check as JSON, for programs.
fn as_json(file: &Path, valid: bool, problems: &[Problem], warnings: &[Problem]) -> String {
    let to_json = |problem: &Problem| {
        json!({
            "file": problem.file_of(file).display().to_string(),
            // A problem without a location is shown at line 1, column 1: programs need a location.
            "line": problem.line.max(1),
            "column": problem.column.max(1),
            "message": problem.message,
        })
    };
    let [problems, warnings] =
        [problems, warnings].map(|list| list.iter().map(to_json).collect::<Value>());
    let file = file.display().to_string();
    let json = json!({ "file": file, "valid": valid, "problems": problems, "warnings": warnings });
    format!("{json:#}\n")
}
