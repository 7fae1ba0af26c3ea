//! Task that calls the visitors of waiting rooms on time, and saves the rooms each second.
//!
//! A *waiting room* lets the visitors of an origin in one after the other: it calls them in their
//! order. The file of the rooms is `state/rooms`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::state::RoomsFile;
use crate::http::gateway::Gateway;
use crate::room::MAX_DELAY;
use crate::time::clock;

/// Minimum pause of the task. A called visitor polls in whole seconds, so it need not be shorter.
const MIN_DELAY: Duration = Duration::from_millis(10);
/// Interval of saves.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// Advances and saves all rooms as long as the gateway runs.
pub(super) async fn keep(
    gateway: watch::Receiver<Option<Arc<Gateway>>>,
    file: Option<RoomsFile>,
) -> Infallible {
    // Content 1 of the file is written when the rooms are restored. Later contents count on from
    // it.
    let (mut saved_at, mut content_number) = (clock::now(), 1);
    loop {
        let current = gateway.borrow().clone();
        let rooms = current.iter().flat_map(|gateway| gateway.rooms());
        let now = clock::now();
        let next_call = rooms.filter_map(|room| room.advance(now)).min();
        if let (Some(file), Some(current)) = (&file, &current)
            && now.since(saved_at) >= SAVE_INTERVAL
        {
            (saved_at, content_number) = (now, content_number + 1);
            file.save(current, content_number).await;
        }
        drop(current);
        let pause = next_call.map_or(MAX_DELAY, |next_call| next_call.since(now));
        sleep(pause.clamp(MIN_DELAY, MAX_DELAY)).await;
    }
}
