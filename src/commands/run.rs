//! `drip run`: the gateway.

use std::path::Path;
use std::process::ExitCode;

use tokio::sync::watch;

use super::{log, serve};
use crate::config::{self, LoadError, Settings};

/// Runs the gateway on `file` until it is told to stop.
#[must_use]
pub fn run(file: &Path) -> ExitCode {
    let (text, settings) = match load(file) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    log::start(&settings.log);
    let (tell, _) = watch::channel(None);
    match actix_rt::System::new().block_on(serve::serve(file.to_owned(), text, settings, tell)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drip: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The file as it was read, to be watched from there on, and the settings that it makes.
pub(super) fn load(file: &Path) -> Result<(String, Settings), LoadError> {
    let text = config::read(file)?;
    let settings = config::parse(&text, file, config::has_admin_token())?;
    Ok((text, settings))
}
