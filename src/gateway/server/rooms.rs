//! Calls the visitors of waiting rooms on time, and saves the rooms in a file.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::state::RoomsFile;
use crate::http::gateway::Gateway;
use crate::room::MAX_DELAY;
use crate::time::clock;

/// Minimum pause: a called visitor polls in whole seconds anyway.
const MIN_DELAY: Duration = Duration::from_millis(10);
/// Interval of saves.
const SAVES: Duration = Duration::from_secs(1);

/// Advances and saves all rooms as long as the gateway runs.
pub(super) async fn keep(
    gateway: watch::Receiver<Option<Arc<Gateway>>>,
    file: Option<RoomsFile>,
) -> Infallible {
    let (mut saved_at, mut nth) = (clock::now(), 1);
    loop {
        let current = gateway.borrow().clone();
        let rooms = current.iter().flat_map(|gateway| gateway.rooms());
        let now = clock::now();
        let next = rooms.filter_map(|room| room.advance(now)).min();
        if let (Some(file), Some(current)) = (&file, &current)
            && now.since(saved_at) >= SAVES
        {
            (saved_at, nth) = (now, nth + 1);
            file.save(current, nth).await;
        }
        drop(current);
        let pause = next.map_or(MAX_DELAY, |next| next.since(now));
        sleep(pause.clamp(MIN_DELAY, MAX_DELAY)).await;
    }
}
