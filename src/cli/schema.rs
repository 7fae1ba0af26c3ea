//! `drip schema`: the JSON Schema of a file, for editors.

use std::io::{self, Write};
use std::process::ExitCode;

use config;
use tools::complain::complain;

/// Prints the schema.
#[must_use]
pub fn schema() -> ExitCode {
    let text = format!("{:#}\n", config::schema());
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("drip: {error}"));
            ExitCode::FAILURE
        }
        // The reader may close the pipe early.
        _ => ExitCode::SUCCESS,
    }
}
