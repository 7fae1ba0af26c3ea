//! State that a zone hands over to the next process, or restores from the previous one.

use std::time::Duration;

use config::StoreKind;
use limit::Moment;
use tokio::sync::{mpsc, oneshot};

use super::Zone;
use super::queries::MIN_PAUSE;
use crate::time::clock;
use crate::zone::join::ExpectedDeparture;
use crate::zone::saved::SavedKey;
use crate::zone::supervisor::ZoneSupervisor;

impl Zone {
    /// Returns whether the process itself keeps the zone's keys, so that they are lost with it.
    pub fn is_in_memory(&self) -> bool {
        self.settings.store == StoreKind::Memory
    }

    /// Rejects all later requests. Current waiters still leave at their rate.
    ///
    /// When the returned future completes, no level rises any more.
    pub fn hand_over(&self) -> impl Future<Output = ()> + use<> {
        // A supervisor that has ended accepts no requests either.
        let living = self.shards.living();
        all_done(living.map(|it| it.ask(ZoneSupervisor::hand_over)).collect())
    }

    /// Returns leased slots to the store, and reports to it which requests have ended.
    ///
    /// When the returned future completes, the store has confirmed this, or does not answer.
    pub fn give_back_leases(&self) -> impl Future<Output = ()> + use<> {
        let living = self.shards.living();
        // A supervisor that has ended has already returned its leases.
        let completion = living.filter(|_| self.sharing.is_some()).map(|it| {
            let (done, completion) = oneshot::channel();
            it.post(|zone| zone.give_back_leases(done));
            completion
        });
        all_done(completion.collect())
    }

    /// Returns the waiters that go on to a gate; in a zone in Redis only those of this gateway.
    ///
    /// Afterwards, [`save`](Self::save) stores a paused key with waiters in its present state.
    ///
    /// Waiters for a permit are left out, because their departure time is unknown.
    pub async fn expected_departures(&self) -> Vec<ExpectedDeparture> {
        // At most one part for each key that has waiters.
        let (to, mut parts) = mpsc::unbounded_channel();
        for supervisor in self.shards.living() {
            let to = to.clone();
            supervisor.post(move |zone| zone.list_expected_departures(&to));
        }
        drop(to);
        let mut all = Vec::new();
        while let Some(part) = parts.recv().await {
            all.extend(part);
        }
        all
    }

    /// Passes all keys that matter later to `take`, in their state at `at`, in parts.
    ///
    /// Call it after [`Zone::hand_over`]. A key may appear twice. Ends early if `take` returns
    /// `false`.
    pub async fn save(&self, at: Moment, mut take: impl AsyncFnMut(Vec<SavedKey>) -> bool) {
        let step = move |zone: &mut _, before| ZoneSupervisor::save(zone, before, at);
        self.walk(MIN_PAUSE, step, async |keys: Vec<SavedKey>| {
            keys.is_empty() || take(keys).await
        })
        .await;
    }

    /// Returns the time from `at` until the zone's budget for new keys is unused again.
    pub fn new_keys_used(&self, at: Moment) -> Duration {
        self.new_keys.used(at)
    }

    /// Restores a budget for new keys that is unused again from `whole` on.
    pub fn restore_new_keys(&self, whole: Moment) {
        if let Some(rate) = self.settings.new_keys {
            self.new_keys.restore(rate, whole, clock::now());
        }
    }

    /// Restores keys that an earlier process saved at `at`.
    ///
    /// Call it before the first join: a key that is already known keeps its state.
    pub fn restore(&self, keys: Vec<SavedKey>, at: Moment) {
        let parts = self.shards.split(keys, |saved| &saved.key);
        for (supervisor, keys) in self.shards.supervisors.iter().zip(parts) {
            if !keys.is_empty() {
                supervisor.post(move |zone| zone.restore(keys, at));
            }
        }
    }
}

/// Waits until every supervisor has answered or ended.
async fn all_done(completion: Vec<oneshot::Receiver<()>>) {
    for completion in completion {
        let _ended = completion.await;
    }
}
