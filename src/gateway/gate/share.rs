//! What a gate shares with the gates of other gateways: slots, places, and what its back-off learns.

use std::sync::Arc;

use actix_rt::ArbiterHandle;
use limit::Moment;

use super::OriginGate;
use super::grid_link::GridLink;
use super::learning::LearningLink;
use super::places::PlacesLink;
use super::store_task::{Shared, StoreTask};
use crate::zone::StoreHealth;

impl OriginGate {
    /// Shares through this store from now on what the origin's settings say, and nothing else.
    ///
    /// Those who wait stay. `worker`: where the tasks run. `since`: when the file got its rate and
    /// its maximum, if the gate did not have them before.
    pub(crate) fn share(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        worker: Option<&ArbiterHandle>,
        since: Moment,
    ) {
        let store = store.filter(|_| worker.is_some());
        for task in self.begin_sharing(origin, store, since) {
            worker.inspect(|worker| {
                worker.spawn_fn(move || {
                    actix_rt::spawn(task.run());
                });
            });
        }
    }

    /// The part of [`share`](Self::share) that is not the tasks themselves. Returns those that have
    /// to begin.
    pub(crate) fn begin_sharing(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        since: Moment,
    ) -> impl Iterator<Item = StoreTask> {
        let slots = self.share_slots(origin, store, since);
        let places = self.share_places(origin, store, since);
        let backoff = self.share_backoff(origin, store);
        [slots, places, backoff].into_iter().flatten()
    }
}

impl StoreTask {
    /// Calls until the gate is dropped, or another task calls for it.
    pub(crate) async fn run(self) {
        match self.shared {
            Shared::Slots => {
                self.converse(&mut GridLink::new(&self)).await;
            }
            Shared::Backoff => self.converse(&mut LearningLink::new(&self)).await,
            Shared::Places => {
                let mut link = PlacesLink::new(&self);
                self.converse(&mut link).await;
                link.end(self.gate.upgrade()).await;
            }
        }
    }
}
