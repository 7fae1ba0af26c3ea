//! `drip run`: runs the gateway.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use config::{AdminTokens, Settings};
use gateway::http::gateway::Gateway;
use gateway::observe::log::Logging;
use gateway::server;
use tokio::sync::watch;
use tools::output::complain;

/// Runs the gateway on `file` until it receives a stop signal.
pub fn run(file: &Path) -> ExitCode {
    let loaded = match server::load(file, true) {
        Ok(loaded) => loaded,
        Err(error) => {
            complain(error.with_remedy());
            return ExitCode::FAILURE;
        }
    };
    let (tokens, logging) = match prepare(&loaded.settings) {
        Ok(prepared) => prepared,
        Err(error) => {
            complain(format_args!("drip: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let (gateway_sender, gateway_receiver) = watch::channel(None);
    let served = actix_rt::System::new().block_on(async {
        tokio::select! {
            served = server::serve(loaded, tokens, gateway_sender) => served,
            // Never ends: the gateway runs until `serve` ends.
            () = follow_level(gateway_receiver, &logging) => Ok(()),
        }
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging.complain(format_args!("drip: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Reads the tokens of the environment, checks the system's limits, and starts the log.
fn prepare(settings: &Settings) -> io::Result<(AdminTokens, Logging)> {
    let tokens = AdminTokens::from_environment().map_err(io::Error::other)?;
    server::check_limit(&settings.server)?;
    Ok((tokens, Logging::start(&settings.log)?))
}

/// Sets the log level of the effective settings, each time they change. Never ends.
async fn follow_level(mut gateway: watch::Receiver<Option<Arc<Gateway>>>, logging: &Logging) {
    while gateway.changed().await.is_ok() {
        if let Some(gateway) = gateway.borrow_and_update().as_ref() {
            logging.set_level(gateway.settings().log.level);
        }
    }
    std::future::pending::<()>().await;
}
