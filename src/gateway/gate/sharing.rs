//! Sharing of a gate with the same gate of other gateways, through Redis (the *store*).
//!
//! Shared are its slots (`shared_rate`), its permits (`shared_permits`) and its back-off
//! (`shared_backoff`), each only if the file says so. Each has a task that calls the store
//! (`store_task`). The share of a key in the queue is something else.

use std::sync::Arc;

use actix_rt::ArbiterHandle;
use limit::Moment;

use super::OriginGate;
use super::shared_backoff::LearningLink;
use super::shared_permits::PermitsLink;
use super::shared_rate::GridLink;
use super::store_task::{SharedThing, StoreTask};
use crate::zone::StoreHealth;

impl OriginGate {
    /// Shares through `store`, from now on, what the origin's settings say, and nothing else.
    ///
    /// Waiters stay. `worker`: the worker that runs the tasks; `None`: nothing is shared. `since`:
    /// instant at which the file got its rate and its maximum, unless the gate had the same before.
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
            SharedThing::Slots => self.converse(&mut GridLink::new(&key), &mut key).await,
            SharedThing::Backoff => self.converse(&mut LearningLink, &mut key).await,
            SharedThing::Permits => {
                let mut link = PermitsLink::default();
                self.converse(&mut link, &mut key).await;
                link.end(&mut key, self.gate.upgrade()).await;
            }
        }
    }
}
