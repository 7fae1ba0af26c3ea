//! Sharing of a gate with other gateways: its slots, its permits and its back-off.
//!
//! Each has its own module: `claims`, `permits` and `learning`.

use std::sync::Arc;

use actix_rt::ArbiterHandle;
use limit::Moment;

use super::OriginGate;
use super::grid_link::GridLink;
use super::learning::LearningLink;
use super::permits::PermitsLink;
use super::store_task::{Shared, StoreTask};
use crate::zone::StoreHealth;

impl OriginGate {
    /// Shares through `store`, from now on, exactly what the origin's settings say.
    ///
    /// Waiters stay. `worker`: the worker that runs the tasks. `since`: instant at which the file
    /// got its rate and its maximum, unless the gate had the same before.
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

    /// Begins to share. Returns the tasks, which the caller must start.
    pub(crate) fn begin_sharing(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        since: Moment,
    ) -> impl Iterator<Item = StoreTask> {
        let slots = self.share_slots(origin, store, since);
        let permits = self.share_permits(origin, store, since);
        let backoff = self.share_backoff(origin, store);
        [slots, permits, backoff].into_iter().flatten()
    }
}

impl StoreTask {
    /// Calls the store until the gate is dropped, or another task calls it for the gate.
    pub(crate) async fn run(self) {
        let mut key = self.key();
        match self.shared {
            Shared::Slots => self.converse(&mut GridLink::new(&key), &mut key).await,
            Shared::Backoff => self.converse(&mut LearningLink, &mut key).await,
            Shared::Permits => {
                let mut link = PermitsLink::default();
                self.converse(&mut link, &mut key).await;
                link.end(&mut key, self.gate.upgrade()).await;
            }
        }
    }
}
