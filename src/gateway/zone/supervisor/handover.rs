//! Handover of a supervisor's keys to the next process, and their restoration there.
//!
//! An *account* is what was charged to a key; in a zone with queues it is a bucket.

use limit::{Account, Moment};
use tokio::sync::oneshot;

use super::keys::State;
use super::{Phase, ZoneSupervisor};
use crate::zone::join::DepartureSender;
use crate::zone::saved::SavedKey;

/// Number of keys that one step of saving visits. A step takes a fraction of a millisecond.
const STEP: usize = 1000;

impl ZoneSupervisor {
    /// Stops accepting requests, because the next process takes over. Current waiters still leave.
    ///
    /// Afterwards all earlier requests are decided or in the mailbox of their key's actor.
    pub(in crate::zone) fn hand_over(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::HandedOver;
            self.release_leases();
        }
    }

    /// Gives back the slots that were leased from the store, because the gateway ends.
    ///
    /// `done` is notified when the store has received them, or does not answer.
    pub(in crate::zone) fn give_back_leases(&self, done: oneshot::Sender<()>) {
        self.release_leases();
        let link = self.shard.store_link();
        actix_rt::spawn(async move {
            if let Some(link) = link {
                link.all_given_back().await;
            }
            // The receiver may have been dropped.
            let _unsent = done.send(());
        });
    }

    /// Makes the actors send the departures of their waiters that go on to an origin's gate.
    pub(in crate::zone) fn list_expected_departures(&self, sender: &DepartureSender) {
        for active in self.keys.each_active() {
            let snapshot = &active.snapshot;
            if snapshot.pending.get() > 0 || snapshot.depth.get() > 0 {
                let sender = sender.clone();
                active.send(move |actor, _, _| actor.list_expected_departures(&sender));
            }
        }
    }

    /// Runs a step of saving all keys in their state at `at`.
    ///
    /// The step begins just before index `end` and goes to the front. Also returns the index to
    /// continue from; 0 at the end.
    pub(in crate::zone) fn save(&mut self, end: usize, at: Moment) -> (Vec<SavedKey>, usize) {
        let (end, account_at) = (end.min(self.keys.len()), self.account_time(at));
        let (keys, mut next_end) = self.keys.walk(end, STEP);
        let mut saved = Vec::new();
        for (nth, (key, known)) in keys.enumerate() {
            let account = match &known.state {
                State::Parked(account) | State::Passing(account) => account.clone(),
                State::Active(active) if active.snapshot.pending.get() == 0 => {
                    Account::Bucket(active.snapshot.bucket.get())
                }
                // The actor has not handled all joins from before the handover yet. So this step
                // ends here, and the next one begins with this key.
                State::Active(_) => {
                    next_end = end - nth;
                    break;
                }
            };
            let rate = self.rates.charged_rate(key);
            let account = account.save(rate, account_at);
            // A key without charges matters only to a zone that bounds its new keys.
            if account.is_some() || self.tuning.zone.new_keys.is_some() {
                saved.push(SavedKey {
                    key: key.into(),
                    rate,
                    account,
                });
            }
        }
        (saved, next_end)
    }

    /// Restores keys that an earlier process saved at `at`.
    pub(in crate::zone) fn restore(&mut self, keys: Vec<SavedKey>, at: Moment) {
        let now = self.shard.pacer.now();
        for key in keys {
            self.restore_key(key, at, now);
        }
    }

    /// Restores a key that was saved at `at`, unless it is known or the zone is full.
    fn restore_key(&mut self, saved: SavedKey, at: Moment, now: Moment) {
        let SavedKey { key, rate, account } = saved;
        let (account_at, account_now) = (self.account_time(at), self.account_time(now));
        if !self.has_room() || self.keys.find(&key).is_some() {
            return;
        }
        let algorithm = self.tuning.zone.algorithm;
        let effective = self.rates.rate_by_settings(&key);
        let mut restored = Account::new(algorithm);
        if let Some(account) = account.filter(|account| account.algorithm() == algorithm) {
            restored = Account::restored(&account, rate, account_at);
            if rate != effective {
                restored.retune(rate, effective, account_now);
            }
        }
        // A drained key matters only to a zone that bounds its new keys.
        if restored.drained_at(effective) <= account_now && self.tuning.zone.new_keys.is_none() {
            return;
        }
        if !self.rates.are_all_the_same() {
            self.rates.set_charged_rate(&key, effective);
        }
        self.keys.add(&key, State::Parked(restored), now);
    }
}
