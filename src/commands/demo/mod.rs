//! `drip demo`: bursts in, an even stream out, before one's eyes.
//!
//! One process holds the gateway on the file's own settings, a sample origin that listens where the file says, and a
//! crowd of clients. What is shown is counted by crowd and origin themselves, not taken from the gateway.

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
use super::log::Logging;
use super::signals::{Asked, Signals};
use super::{run, serve};
use crate::clock;
use crate::config::{Level, Log, Settings};
use crate::gateway::Gateway;
use crate::limit::Moment;

/// Plays the demo on `file` until it is interrupted.
#[must_use]
pub fn demo(file: &Path) -> ExitCode {
    let ended = match run::load(file) {
        Ok((text, settings)) => actix_rt::System::new().block_on(play(file, text, settings)),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the lines has seen enough.
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
    // What goes well, and what is rejected, is to be seen in the picture.
    let _log = Logging::start(&Log {
        level: settings.log.level.min(Level::Warn),
        ..settings.log.clone()
    })
    .without("drip::events");
    let tally = Tally::default();
    let mut screen = Screen::new(file);
    let (tell, told) = watch::channel(None);
    let mut signals = Signals::listen()?;
    actix_rt::spawn(origin::listen(&aim, tally.clone())?);
    // Interrupted, the gateway would let its queues drain. Here nobody needs the answers, so the demo ends first.
    tokio::select! {
        () = interrupted(&mut signals) => {}
        served = serve::serve(file.to_owned(), text, settings, tell) => served.map_err(|error| remedy(error, file))?,
        shown = show(aim, told, &tally, &mut screen) => shown?,
    }
    tally.with(|counts| counts.next_second(Moment::default()));
    screen.summary(&tally.with(|counts| counts.total()))
}

async fn interrupted(signals: &mut Signals) {
    while signals.next().await != Asked::Stop {}
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

/// Sends the crowd, and shows what becomes of it, a line a second.
async fn show(
    mut aim: Aim,
    mut told: watch::Receiver<Option<Arc<Gateway>>>,
    tally: &Tally,
    screen: &mut Screen<'_>,
) -> io::Result<()> {
    if told.wait_for(Option::is_some).await.is_err() {
        // The gateway has ended, and says itself why.
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
                // To the nearest, because ticks come up to a millisecond late.
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
                        // Where the gateway listens is settled until a restart.
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
