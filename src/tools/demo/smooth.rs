//! The scene `smooth`: bursts in, an even stream out.

use std::io;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::aim::Aim;
use super::crowd::Crowd;
use super::origin;
use super::screen::Screen;
use super::stage::{self, InForce, nearest_tenth};
use super::tally::{TENTH, TENTHS, Tally};
use crate::limit::Moment;
use crate::server::Loaded;
use crate::time::clock;

/// Plays the scene on a file until it is interrupted.
pub(super) async fn play(loaded: Loaded) -> io::Result<()> {
    let aim = Aim::of(&loaded.settings)
        .map_err(|error| io::Error::other(format!("{}: {error}", loaded.file.display())))?;
    let tally = Tally::default();
    let file = loaded.file.clone();
    let mut screen = Screen::new(&file);
    actix_rt::spawn(origin::listen(&aim.origin, &aim.servers, tally.clone())?);
    let (tell, told) = watch::channel(None);
    let shown = show(aim, told, &tally, &mut screen);
    stage::play(loaded, tell, shown).await?;
    tally.with(|counts| counts.next_second(Moment::default()));
    screen.summary(&tally.with(|counts| counts.total()))
}

/// Sends the crowd's requests, and shows the result as one line a second.
async fn show(
    mut aim: Aim,
    mut told: InForce,
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
