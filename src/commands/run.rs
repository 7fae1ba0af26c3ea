//! `drip run`: runs the gateway.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::sync::watch;

use super::log::Logging;
use super::{certificates, serve};
use crate::config::{self, LoadError, Settings};
use crate::gateway::Gateway;

/// Runs the gateway on `file` until it is told to stop.
#[must_use]
pub fn run(file: &Path) -> ExitCode {
    let (text, settings) = match certificates::load(file) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let logging = Logging::start(&settings.log);
    let (tell, told) = watch::channel(None);
    let served = actix_rt::System::new().block_on(async {
        tokio::select! {
            served = serve::serve(file.to_owned(), text, settings, tell) => served,
            () = follow(told, &logging) => Ok(()),
        }
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drip: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Sets the log level of the settings in force, each time they change.
async fn follow(mut gateway: watch::Receiver<Option<Arc<Gateway>>>, logging: &Logging) {
    while gateway.changed().await.is_ok() {
        if let Some(gateway) = gateway.borrow_and_update().as_ref() {
            logging.set_level(gateway.settings().log.level);
        }
    }
    std::future::pending::<()>().await;
}

/// Reads the file. Returns its text, which the watcher starts from, and its settings.
pub(super) fn load(file: &Path) -> Result<(String, Settings), LoadError> {
    let text = config::read(file)?;
    let settings = config::parse(&text, file, config::has_admin_token())?;
    Ok((text, settings))
}
