//! State that a zone hands over to the next process, or restores from the previous one.

use std::time::Duration;

use config::StoreKind;
use futures_util::FutureExt;
use futures_util::future::join_all;
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
        let completions = living.map(|supervisor| supervisor.ask(ZoneSupervisor::hand_over));
        join_all(completions).map(drop)
    }

    /// Returns leased slots to the store, and reports to it which requests have ended.
    ///
    /// When the returned future completes, the store has confirmed this, or does not answer.
    pub fn give_back_leases(&self) -> impl Future<Output = ()> + use<> {
        let living = self.shards.living();
        // A supervisor that has ended has already returned its leases.
        let completions = living.filter(|_| !self.is_in_memory()).map(|supervisor| {
            let (done, completion) = oneshot::channel();
            supervisor.post(|zone| zone.give_back_leases(done));
            completion
        });
        join_all(completions).map(drop)
    }

    /// Returns the departures of waiters that go on to an origin's gate.
    ///
    /// Of a zone in Redis, only those of this gateway. Waiters for a permit are left out, because
    /// their departure time is unknown. Call it before [`save`](Self::save): the call makes the
    /// actors publish the present state of their keys.
    pub async fn expected_departures(&self) -> Vec<ExpectedDeparture> {
        // At most one departure for each waiter.
        let (sender, mut received) = mpsc::unbounded_channel();
        for supervisor in self.shards.living() {
            let sender = sender.clone();
            supervisor.post(move |zone| zone.list_expected_departures(&sender));
        }
        // The list ends when the last actor has dropped its sender.
        drop(sender);
        let mut departures = Vec::new();
        while received.recv_many(&mut departures, usize::MAX).await > 0 {}
        departures
    }

    /// Saves all keys that the next process needs, in their state at `at`: passes them to `take`.
    ///
    /// Call it after [`Zone::hand_over`]. `take` gets the keys in parts, some keys twice. Ends
    /// early if `take` returns `false`.
    pub async fn save(&self, at: Moment, mut take: impl AsyncFnMut(Vec<SavedKey>) -> bool) {
        let step = move |zone: &mut ZoneSupervisor, end| zone.save(end, at);
        self.walk(MIN_PAUSE, step, async |keys: Vec<SavedKey>| {
            keys.is_empty() || take(keys).await
        })
        .await;
    }

    /// Returns the time from `at` until the zone's budget for new keys is unused again.
    pub fn new_keys_used(&self, at: Moment) -> Duration {
        self.parameters.published().new_keys.used(at)
    }

    /// Restores a budget for new keys that is unused again from `unused_at` on.
    pub fn restore_new_keys(&self, unused_at: Moment) {
        if let Some(rate) = self.settings.new_keys {
            let published = self.parameters.published();
            published.new_keys.restore(rate, unused_at, clock::now());
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
