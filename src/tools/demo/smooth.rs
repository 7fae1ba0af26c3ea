//! The scene `smooth`: bursts in, an even stream out.

use std::io;
use std::time::Duration;

use gateway::server::Loaded;
use limit::Moment;
use tokio::sync::watch;

use super::aim::Aim;
use super::crowd::Crowd;
use super::origin;
use super::screen::Screen;
use super::stage::{self, Beat, InForce, next_gateway, wait_for_gateway};
use super::tally::Tally;

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
    Box::pin(stage::play(loaded, tell, shown)).await?;
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
    wait_for_gateway(&mut told).await;
    let crowd = Crowd::new(tally.clone());
    screen.introduction(&aim)?;
    let mut beat = Beat::start().await;
    tally.with(|counts| {
        counts.retune(aim.rate.interval());
        counts.next_second(beat.began)
    });
    crowd.come(&aim, 0);
    loop {
        tokio::select! {
            (tenth, has_second_ended) = beat.next() => {
                if has_second_ended {
                    let next = beat.began + Duration::from_secs(beat.seconds);
                    let ended = tally.with(|counts| counts.next_second(next));
                    screen.line(&ended, &aim)?;
                }
                crowd.come(&aim, tenth);
            }
            gateway = next_gateway(&mut told) => {
                let Some(gateway) = gateway else {
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
