//! What a zone leaves to the next process, and takes from the one before.

use std::time::Duration;

use config::StoreKind;
use limit::Moment;
use tokio::sync::{mpsc, oneshot};

use super::Zone;
use super::queries::MIN_PAUSE;
use crate::time::clock;
use crate::zone::join::{SavedKey, TurnToCome};
use crate::zone::supervisor::ZoneSupervisor;

impl Zone {
    /// Whether a process keeps the zone's keys by itself, so that they end with it.
    pub fn is_in_memory(&self) -> bool {
        self.settings.store == StoreKind::Memory
    }

    /// Rejects all later requests. Those that wait leave at their pace.
    ///
    /// Once the result completes, no level rises any more.
    pub fn hand_over(&self) -> impl Future<Output = ()> + use<> {
        // One that has ended takes no requests either.
        let living = self.shards.living();
        all_done(living.map(|it| it.ask(ZoneSupervisor::hand_over)).collect())
    }

    /// Gives back the places that were taken ahead from the store, and waits until it knows which
    /// requests have ended.
    ///
    /// Once the result completes, the store has them, or does not answer.
    pub fn give_back_leases(&self) -> impl Future<Output = ()> + use<> {
        let living = self.shards.living();
        // One that has ended has given them back.
        let told = living.filter(|_| self.sharing.is_some()).map(|it| {
            let (done, told) = oneshot::channel();
            it.post(|zone| zone.give_back_leases(done));
            told
        });
        all_done(told.collect())
    }

    /// Those that wait now and go on to a gate. In a zone in Redis, those that wait here.
    ///
    /// After it, a paused key with waiting requests is [saved](Self::save) as it is now.
    ///
    /// Requests that wait until fewer of their key run are not among them: nobody knows when.
    pub async fn turns_to_come(&self) -> Vec<TurnToCome> {
        // At most a part for each key that has waiters.
        let (to, mut parts) = mpsc::unbounded_channel();
        for supervisor in self.shards.living() {
            let to = to.clone();
            supervisor.post(move |zone| zone.list_turns_to_come(&to));
        }
        drop(to);
        let mut all = Vec::new();
        while let Some(part) = parts.recv().await {
            all.extend(part);
        }
        all
    }

    /// Gives all keys that matter later to `take`, as they are at `at`, a part at a time.
    ///
    /// Call it after [`Zone::hand_over`]. Some keys may come twice. Ends early if `take` returns
    /// `false`.
    pub async fn save(&self, at: Moment, mut take: impl AsyncFnMut(Vec<SavedKey>) -> bool) {
        let step = move |zone: &mut _, before| ZoneSupervisor::save(zone, before, at);
        self.walk(MIN_PAUSE, step, async |keys: Vec<SavedKey>| {
            keys.is_empty() || take(keys).await
        })
        .await;
    }

    /// How long from `at` until nothing of the zone's budget for new keys is used up.
    pub fn new_keys_used(&self, at: Moment) -> Duration {
        self.new_keys.used(at)
    }

    /// Continues a budget for new keys of which nothing is used up from `whole` on.
    pub fn restore_new_keys(&self, whole: Moment) {
        if let Some(rate) = self.settings.new_keys {
            self.new_keys.restore(rate, whole, clock::now());
        }
    }

    /// Continues from keys that an earlier process saved at `at`.
    ///
    /// Call it before the first join: a key that is known already stays as it is.
    pub fn restore(&self, keys: Vec<SavedKey>, at: Moment) {
        let parts = self.shards.split(keys, |saved| &saved.key);
        for (supervisor, keys) in self.shards.supervisors().iter().zip(parts) {
            if !keys.is_empty() {
                supervisor.post(move |zone| zone.restore(keys, at));
            }
        }
    }
}

async fn all_done(told: Vec<oneshot::Receiver<()>>) {
    for told in told {
        let _ended = told.await;
    }
}
