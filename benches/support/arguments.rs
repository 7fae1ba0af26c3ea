//! What a measuring program is started with.

use std::io;
use std::process::ExitCode;

/// Runs what measures, told whether it is to be `--quick`; what fails is told.
pub fn run(measure: impl FnOnce(bool) -> io::Result<()>) -> ExitCode {
    let mut quick = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            // What cargo adds.
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
