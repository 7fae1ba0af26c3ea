//! The arguments of a measuring program.

use std::io;
use std::process::ExitCode;

/// Runs `measure` with whether `--quick` was given. Prints its error.
pub fn run(measure: impl FnOnce(bool) -> io::Result<()>) -> ExitCode {
    let mut quick = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            // cargo adds this.
            "--bench" => {}
            "--quick" => quick = true,
            other => {
                eprintln!("{other}: not known; there is --quick");
                return ExitCode::FAILURE;
            }
        }
    }
    match measure(quick) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
