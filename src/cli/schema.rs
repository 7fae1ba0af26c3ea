//! `drip schema`: prints the JSON Schema of a file, for editors.

use std::process::ExitCode;

use tools::output::print;

/// Prints the schema.
pub fn schema() -> ExitCode {
    print(&format!("{:#}\n", config::schema()))
}
