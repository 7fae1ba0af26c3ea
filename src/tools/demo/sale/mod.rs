//! The scene `sale`: a crowd of visitors before the waiting room of a shop.
//!
//! A visitor who waits keeps a ticket and nothing else: no connection, no thread. The page of the
//! room can be opened in a browser meanwhile.

mod file;
mod score;
mod screen;
mod visitors;

use std::io;
use std::num::NonZeroU32;

use tokio::sync::watch;

use self::file::SaleFile;
use self::score::SaleScore;
use self::visitors::Visitors;
use super::origin;
use super::stage::{self, Beat, InForce, next_gateway, wait_for_gateway};
use super::tally::Tally;
use crate::http::gateway::Gateway;
use crate::server;
use crate::time::clock;

/// What the shop shows to whoever is inside. It asks again, so its visitor stays.
const PAGE: &str = include_str!("shop.html");

/// Plays the scene to its end, or until it is interrupted.
pub(super) async fn play() -> io::Result<()> {
    let file = SaleFile::create()?;
    let loaded = server::load_to_start(file.path()).map_err(io::Error::other)?;
    let reached = Tally::default();
    for origin in &loaded.settings.origins {
        let listening = origin::listen_with(&origin.name, &origin.servers, reached.clone(), PAGE);
        actix_rt::spawn(listening?);
    }
    let score = SaleScore::default();
    let (tell, in_force) = watch::channel(None);
    let mut seconds = 0;
    let shown = show(&file, in_force, &reached, &score, &mut seconds);
    stage::play(loaded, tell, shown).await?;
    screen::summary(seconds, &score.total(clock::now()))
}

/// Lets the visitors come, and shows what they get as one line a second.
async fn show(
    file: &SaleFile,
    mut in_force: InForce,
    reached: &Tally,
    score: &SaleScore,
    seconds: &mut u64,
) -> io::Result<()> {
    wait_for_gateway(&mut in_force).await;
    let mut places = in_force.borrow_and_update().as_deref().and_then(places_of);
    screen::introduction(file)?;
    let mut visitors = Visitors::new(file.gateway(), score.clone());
    let mut beat = Beat::start().await;
    visitors.come(0);
    loop {
        tokio::select! {
            (tenth, has_second_ended) = beat.next() => {
                if has_second_ended {
                    *seconds = beat.seconds;
                    let now = clock::now();
                    let left = reached.with(|counts| counts.next_second(now).left);
                    screen::line(beat.seconds, &score.next_second(now), places, left.iter().sum())?;
                    if visitors.are_all_there() && score.is_over() {
                        return Ok(());
                    }
                }
                visitors.come(tenth);
            }
            gateway = next_gateway(&mut in_force) => {
                let Some(gateway) = gateway else {
                    return std::future::pending().await;
                };
                let new = places_of(&gateway);
                if new != places {
                    places = new;
                    screen::changed(file, places)?;
                }
            }
        }
    }
}

/// The places of the room in force; `None`: they are not bounded.
fn places_of(gateway: &Gateway) -> Option<u32> {
    let mut origins = gateway.settings().origins.iter();
    let room = origins.find_map(|origin| origin.room.as_ref())?;
    room.sessions.map(NonZeroU32::get)
}
