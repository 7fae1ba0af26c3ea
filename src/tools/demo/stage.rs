//! What the scenes share: a gateway in this process, interrupts, and the clock of a scene.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use super::tally::TENTH;
use crate::config::{Level, Log};
use crate::http::gateway::Gateway;
use crate::limit::Moment;
use crate::observe::log::Logging;
use crate::server::signals::{SignalRequest, Signals};
use crate::server::{self, Loaded};

/// Receives each gateway that comes into force.
pub(super) type InForce = watch::Receiver<Option<Arc<Gateway>>>;

/// Runs the gateway and a scene until the scene ends or is interrupted.
///
/// Sends each gateway that comes into force on `tell`.
///
/// # Errors
///
/// Returns an error if the gateway cannot be started, and the errors of the scene.
pub(super) async fn play(
    loaded: Loaded,
    tell: watch::Sender<Option<Arc<Gateway>>>,
    scene: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    // The picture shows what succeeds and what is rejected, so the log leaves it out.
    let log = &loaded.settings.log;
    let _log = Logging::start(&Log {
        level: log.level.min(Level::Warn),
        ..log.clone()
    })?;
    let file = loaded.file.clone();
    let mut signals = Signals::listen()?;
    // When interrupted, the gateway would drain its queues. The demo does not need those answers,
    // so it ends first.
    tokio::select! {
        () = interrupted(&mut signals) => Ok(()),
        served = server::serve(loaded, tell) => {
            served.map_err(|error| remedy(error, &file))
        }
        shown = scene => shown,
    }
}

async fn interrupted(signals: &mut Signals) {
    while signals.next().await != SignalRequest::Stop {}
}

fn remedy(error: io::Error, file: &Path) -> io::Error {
    if error.kind() != io::ErrorKind::AddrInUse {
        return error;
    }
    let file = file.display();
    io::Error::new(
        error.kind(),
        format!("{error}; stop it, or write another port into {file}"),
    )
}

/// The tenths of a second from `began` to `now`, rounded to the nearest.
pub(super) fn nearest_tenth(began: Moment, now: Moment) -> u64 {
    let passed = (now + TENTH / 2).since(began);
    u64::try_from(passed.as_nanos() / TENTH.as_nanos()).unwrap_or(u64::MAX)
}
