//! `drip demo`: bursts in, an even stream out, shown live.
//!
//! One process runs the gateway with the file's own settings, a sample origin that listens where
//! the file says, and a crowd of clients. The crowd and the origin count what is shown; the numbers
//! do not come from the gateway.

mod aim;
mod crowd;
mod origin;
mod picture;
mod place;
mod screen;
mod tally;
mod words;

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use self::aim::Aim;
use self::crowd::Crowd;
use self::screen::Screen;
use self::tally::{TENTH, TENTHS, Tally};
use crate::config::{Level, Log, Settings};
use crate::http::gateway::Gateway;
use crate::limit::Moment;
use crate::observe::events;
use crate::observe::log::Logging;
use crate::server;
use crate::server::signals::{SignalRequest, Signals};
use crate::time::clock;

/// Plays the demo on `file` until it is interrupted.
#[must_use]
pub fn demo(file: &Path) -> ExitCode {
    let ended = match server::load(file) {
        Ok((text, settings)) => actix_rt::System::new().block_on(play(file, text, settings)),
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

async fn play(file: &Path, text: String, settings: Settings) -> io::Result<()> {
    let aim = Aim::of(&settings)
        .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
    // The picture shows what succeeds and what is rejected, so the log leaves it out.
    let _log = Logging::start(&Log {
        level: settings.log.level.min(Level::Warn),
        ..settings.log.clone()
    })
    .without(events::TARGET);
    let tally = Tally::default();
    let mut screen = Screen::new(file);
    let (tell, told) = watch::channel(None);
    let mut signals = Signals::listen()?;
    actix_rt::spawn(origin::listen(&aim, tally.clone())?);
    // When interrupted, the gateway would drain its queues. The demo does not need those answers,
    // so it ends first.
    tokio::select! {
        () = interrupted(&mut signals) => {}
        served = server::serve(file.to_owned(), text, settings, tell) => served.map_err(|error| remedy(error, file))?,
        shown = show(aim, told, &tally, &mut screen) => shown?,
    }
    tally.with(|counts| counts.next_second(Moment::default()));
    screen.summary(&tally.with(|counts| counts.total()))
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

/// Sends the crowd's requests, and shows the result as one line a second.
async fn show(
    mut aim: Aim,
    mut told: watch::Receiver<Option<Arc<Gateway>>>,
    tally: &Tally,
    screen: &mut Screen<'_>,
) -> io::Result<()> {
    if told.wait_for(Option::is_some).await.is_err() {
        // The gateway has ended, and reports the reason itself.
        return std::future::pending().await;
    }
    let crowd = Crowd::new(tally.clone());
    screen.introduction(&aim)?;
    let mut ticks = interval(TENTH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks.tick().await;
    let began = clock::now();
    tally.with(|counts| {
        counts.retune(aim.rate.interval());
        counts.next_second(began)
    });
    crowd.come(&aim, 0);
    let mut seconds = 0;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                // Rounded to the nearest, because ticks come up to a millisecond late.
                let tenth = nearest_tenth(began, clock::now());
                let second = tenth / TENTHS as u64;
                if second > seconds {
                    seconds = second;
                    let next = began + Duration::from_secs(seconds);
                    let ended = tally.with(|counts| counts.next_second(next));
                    screen.line(&ended, &aim)?;
                }
                crowd.come(&aim, tenth);
            }
            changed = told.changed() => {
                let gateway = told.borrow_and_update().clone();
                let (Ok(()), Some(gateway)) = (changed, gateway) else {
                    return std::future::pending().await;
                };
                match Aim::of(gateway.settings()) {
                    Ok(new) => {
                        tally.with(|counts| counts.retune(new.rate.interval()));
                        screen.changed(&aim, &new)?;
                        // The address that the gateway listens on does not change until a restart.
                        aim = Aim { gateway: aim.gateway, ..new };
                    }
                    Err(error) => screen.unclear(&error)?,
                }
            }
        }
    }
}

fn nearest_tenth(began: Moment, now: Moment) -> u64 {
    let passed = (now + TENTH / 2).since(began);
    u64::try_from(passed.as_nanos() / TENTH.as_nanos()).unwrap_or(u64::MAX)
}
