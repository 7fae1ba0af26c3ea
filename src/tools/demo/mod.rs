//! `drip demo`: what the gateway does, shown live.
//!
//! One process runs the gateway, a sample origin and clients. The clients and the origin count
//! what is shown; the numbers do not come from the gateway.

mod aim;
mod crowd;
mod origin;
mod picture;
mod place;
mod screen;
mod smooth;
mod stage;
mod tally;
mod words;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::server;

/// Plays the demo on `file` until it is interrupted.
#[must_use]
pub fn demo(file: &Path) -> ExitCode {
    let ended = match server::load(file) {
        Ok((text, settings)) => {
            actix_rt::System::new().block_on(smooth::play(file, text, settings))
        }
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe because it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drip: {error}");
            ExitCode::FAILURE
        }
    }
}
