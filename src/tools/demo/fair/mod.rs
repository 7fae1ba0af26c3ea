//! The scene `fair`: one client floods the gate of an origin, and nine do not.
//!
//! It has two parts. In the first, all requests wait in one queue. Then the file is saved with
//! `share`, and in the second part clients take turns.

mod clients;
mod file;
mod score;
mod screen;

use std::io;

use gateway::server;
use gateway::time::clock;
use tokio::sync::watch;

use self::clients::Clients;
use self::file::SceneFile;
use self::score::Score;
use super::origin;
use super::stage::{self, Beat, InForce, next_gateway, wait_for_gateway};
use super::tally::Tally;

/// Seconds of each part.
const SECONDS: u64 = 8;

/// Plays the scene to its end, or until it is interrupted.
pub(super) async fn play() -> io::Result<()> {
    let file = SceneFile::create()?;
    let loaded = server::load_to_start(file.path()).map_err(io::Error::other)?;
    let reached = Tally::default();
    for origin in &loaded.settings.origins {
        let listening = origin::listen(&origin.name, &origin.servers, reached.clone());
        actix_rt::spawn(listening?);
    }
    let (without, with) = (Score::default(), Score::default());
    let (tell, in_force) = watch::channel(None);
    let shown = show(&file, in_force, &reached, [&without, &with]);
    stage::play(loaded, tell, shown).await?;
    screen::summary(&without.total(), &with.total())
}

/// Sends the clients' requests, and shows the result as one line a second.
///
/// A request counts in the part in which it is sent, so those that still wait when the file is
/// saved do not blur the second part.
async fn show(
    file: &SceneFile,
    mut in_force: InForce,
    reached: &Tally,
    [without, with]: [&Score; 2],
) -> io::Result<()> {
    wait_for_gateway(&mut in_force).await;
    let clients = Clients::new(file.gateway());
    screen::introduction(file)?;
    let mut beat = Beat::start().await;
    let mut end = SECONDS;
    let (mut score, mut is_shared) = (without, false);
    clients.send(0, score);
    loop {
        tokio::select! {
            (tenth, has_second_ended) = beat.next() => {
                if has_second_ended {
                    let left = reached.with(|counts| counts.next_second(clock::now()).left);
                    screen::line(beat.seconds, &score.next_second(), left.iter().sum())?;
                    match (beat.seconds >= end, is_shared) {
                        (true, true) => return Ok(()),
                        (true, false) => file.share()?,
                        (false, _) => {}
                    }
                }
                clients.send(tenth, score);
            }
            gateway = next_gateway(&mut in_force) => {
                let Some(gateway) = gateway else {
                    return std::future::pending().await;
                };
                let mut origins = gateway.settings().origins.iter();
                if !is_shared && origins.any(|origin| origin.share.is_some()) {
                    (score, is_shared) = (with, true);
                    end = beat.seconds + SECONDS;
                    screen::shared(file)?;
                }
            }
        }
    }
}
