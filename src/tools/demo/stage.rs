//! Runs the gateway, the origin and a scene together, until a scene ends or is interrupted.
//!
//! A scene is one of the demonstrations, `smooth` or `fair`. It has a clock that counts tenths of a
//! second. A gateway is in force from the moment at which it serves requests with its file.

use std::io;
use std::sync::Arc;

use config::{AdminTokens, Level, Log};
use gateway::http::gateway::Gateway;
use gateway::observe::log::Logging;
use gateway::server;
use gateway::server::signals::{SignalRequest, Signals};
use gateway::time::clock;
use limit::Moment;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::config_file::ConfigFile;
use super::origin;
use super::tally::{TENTH, TENTHS, Tally};

/// Receives each gateway that comes into force: at the start, and when the file was saved.
pub(super) type InForce = watch::Receiver<Option<Arc<Gateway>>>;

/// Runs the gateway, the origin and a scene until the scene ends or is interrupted.
///
/// The scene begins when the gateway is in force. `tally`: the counts to which the origin adds.
///
/// # Errors
///
/// Returns an error if the gateway cannot be started, and the errors of the scene.
pub(super) async fn play<S: Future<Output = io::Result<()>>>(
    file: &ConfigFile,
    tally: Tally,
    scene: impl FnOnce(InForce) -> S,
) -> io::Result<()> {
    let loaded = server::load(&file.path, true).map_err(io::Error::other)?;
    actix_rt::spawn(origin::listen(file.addresses.origin, tally)?);
    // The picture shows successes and rejections, so the log leaves them out.
    let log = &loaded.settings.log;
    let log = Logging::start(&Log {
        level: log.level.min(Level::Warn),
        ..log.clone()
    })?;
    log.leave_out("drip_gateway::status::headline");
    let tokens = AdminTokens::from_environment().map_err(io::Error::other)?;
    let mut signals = Signals::listen()?;
    let (gateway_sender, mut in_force) = watch::channel(None);
    let scene = async {
        if in_force.wait_for(Option::is_some).await.is_err() {
            // The gateway has ended, and reports the reason itself.
            std::future::pending::<()>().await;
        }
        scene(in_force).await
    };
    // An interrupted gateway would drain its queues. The demo does not need those answers, so the
    // scene ends first.
    tokio::select! {
        () = wait_for_stop(&mut signals) => Ok(()),
        // Boxed, because the future is large.
        served = Box::pin(server::serve(loaded, tokens, gateway_sender)) => served,
        ended = scene => ended,
    }
}

/// Waits for a signal that stops the program. Ignores other signals.
async fn wait_for_stop(signals: &mut Signals) {
    while signals.next().await != SignalRequest::Stop {}
}

/// Waits for the next gateway that comes into force. Waits for ever if the gateway has ended.
pub(super) async fn next_gateway(in_force: &mut InForce) -> Arc<Gateway> {
    while in_force.changed().await.is_ok() {
        if let Some(gateway) = in_force.borrow_and_update().clone() {
            return gateway;
        }
    }
    std::future::pending().await
}

/// The clock of a scene: its tenths of a second, counted from the start.
pub(super) struct SceneClock {
    ticks: Interval,
    /// Start of the scene.
    pub(super) began: Moment,
    /// Number of seconds that have ended.
    pub(super) seconds: u64,
}

impl SceneClock {
    /// Starts the clock now.
    pub(super) async fn start() -> Self {
        let mut ticks = interval(TENTH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks.tick().await;
        Self {
            ticks,
            began: clock::now(),
            seconds: 0,
        }
    }

    /// Waits for the next tenth. Returns its number, and whether a second has ended.
    pub(super) async fn next(&mut self) -> (u64, bool) {
        self.ticks.tick().await;
        // Rounding to the nearest tenth, because ticks are up to a millisecond late.
        let passed = (clock::now() + TENTH / 2).since(self.began);
        let tenth = u64::try_from(passed.as_nanos() / TENTH.as_nanos()).unwrap_or(u64::MAX);
        let second = tenth / TENTHS as u64;
        let has_ended = second > self.seconds;
        self.seconds = self.seconds.max(second);
        (tenth, has_ended)
    }
}
