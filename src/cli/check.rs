//! `drip check`: checks a file, and prints a summary or the problems.

use std::path::Path;
use std::process::ExitCode;

use config::{Problem, Settings};
use gateway::server::{self, Loaded};
use serde_json::{Value, json};
use tools::output::{complain, print};

/// Form in which `drip check` prints the result.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// One line that sums up a valid file; on standard error, the warnings or the problems.
    Summary,
    /// As [`Summary`](Self::Summary), and all settings in force.
    All,
    /// The problems and the warnings as JSON.
    Json,
}

/// Checks `file` and prints the result.
pub fn check(file: &Path, form: Form) -> ExitCode {
    let loaded = server::load(file, false);
    let is_valid = loaded.is_ok();
    let printed = match (&loaded, form) {
        (Ok(Loaded { settings, .. }), Form::Json) => {
            print(&as_json(file, true, &[], &settings.warnings))
        }
        (Err(error), Form::Json) => print(&as_json(file, false, &error.problems(), &[])),
        (Ok(Loaded { settings, .. }), Form::Summary | Form::All) => {
            let all = matches!(form, Form::All);
            let printed = print(&as_text(settings, all));
            for warning in &settings.warnings {
                complain(warning.as_warning(file));
            }
            printed
        }
        (Err(problems), Form::Summary | Form::All) => {
            complain(problems.with_remedy());
            ExitCode::FAILURE
        }
    };
    // An invalid file fails the command, even if its problems could be printed as JSON.
    if is_valid { printed } else { ExitCode::FAILURE }
}

/// Returns the summary of a valid file. `all`: as a comment above all settings in force.
fn as_text(settings: &Settings, all: bool) -> String {
    let counts = [
        (settings.zones.len(), "zone"),
        (settings.origins.len(), "origin"),
        (settings.warnings.len(), "warning"),
    ];
    let counts = counts.map(|(count, noun)| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    });
    let summary = format!("ok: {}\n", counts.join(", "));
    if all {
        format!(
            "# {summary}\n{}",
            config::show(&settings.without_room_secrets())
        )
    } else {
        summary
    }
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
