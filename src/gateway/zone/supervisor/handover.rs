//! The end of a process whose successor continues from its keys.

use limit::{Account, Moment};

use super::here::Handle;
use super::keys::State;
use super::{Phase, ZoneSupervisor};
use crate::zone::messages::{
    GiveBackLeases, HandOver, ListTurnsToCome, RestoreKeys, SaveKeys, SavedKeys,
};
use crate::zone::saved_key::SavedKey;

/// How many keys one step of saving visits: a fraction of a millisecond.
const STEP: usize = 1000;

impl Handle<HandOver> for ZoneSupervisor {
    fn handle(&mut self, HandOver { done }: HandOver) {
        if self.phase == Phase::Open {
            self.phase = Phase::HandedOver;
            self.release_leases();
        }
        // The caller may have gone.
        let _gone = done.send(());
    }
}

impl Handle<GiveBackLeases> for ZoneSupervisor {
    fn handle(&mut self, GiveBackLeases { done }: GiveBackLeases) {
        self.release_leases();
        let link = self.shard.sharing();
        actix_rt::spawn(async move {
            if let Some(link) = link {
                link.all_given_back().await;
            }
            // The caller may not wait any more.
            let _gone = done.send(());
        });
    }
}

impl Handle<ListTurnsToCome> for ZoneSupervisor {
    fn handle(&mut self, list: ListTurnsToCome) {
        for active in self.keys.each_active() {
            let snapshot = &active.snapshot;
            if snapshot.pending.get() > 0 || snapshot.depth.get() > 0 {
                active.tell(list.clone());
            }
        }
    }
}

impl Handle<SaveKeys> for ZoneSupervisor {
    fn handle(&mut self, SaveKeys { before, at, reply }: SaveKeys) {
        let (end, at) = (before.min(self.keys.len()), self.counted_at(at));
        let (keys, mut next) = self.keys.walk(end, STEP);
        let mut saved = Vec::new();
        for (nth, (key, known)) in keys.enumerate() {
            let account = match &known.state {
                State::Parked(account) | State::Passing(account) => account.clone(),
                State::Active(active) if active.snapshot.pending.get() == 0 => {
                    Account::Bucket(active.snapshot.bucket.get())
                }
                // Its actor has joins from before the handover to handle: this key comes next.
                State::Active(_) => {
                    next = end - nth;
                    break;
                }
            };
            let rate = self.rates.of(key);
            let account = account.save(rate, at);
            // Whether a key is known matters only to a zone that bounds its new keys.
            if account.is_some() || self.tuning.new_keys.is_some() {
                saved.push(SavedKey {
                    key: key.into(),
                    rate,
                    account,
                });
            }
        }
        // The caller may have gone.
        let _gone = reply.send(SavedKeys {
            is_behind: next == end && next > 0,
            keys: saved,
            before: next,
        });
    }
}

impl Handle<RestoreKeys> for ZoneSupervisor {
    fn handle(&mut self, RestoreKeys { keys, at }: RestoreKeys) {
        let now = self.shard.pacer.now();
        for key in keys {
            self.restore(key, at, now);
        }
    }
}

impl ZoneSupervisor {
    /// Remembers a key that an earlier process saved at `at`, while there is room.
    fn restore(&mut self, saved: SavedKey, at: Moment, now: Moment) {
        let SavedKey { key, rate, account } = saved;
        let (at, counted) = (self.counted_at(at), self.counted_at(now));
        if !self.has_room() || self.keys.find(&key).is_some() {
            return;
        }
        let algorithm = self.tuning.algorithm;
        let account = account.filter(|account| account.algorithm() == algorithm);
        let wanted = self.rates.wanted(&key);
        let account = account.map_or_else(
            || Account::new(algorithm),
            |account| {
                let mut account = Account::restored(&account, rate, at);
                if rate != wanted {
                    account.retune(rate, wanted, counted);
                }
                account
            },
        );
        if account.drained_at(wanted) <= counted && self.tuning.new_keys.is_none() {
            return;
        }
        if !self.rates.are_all_the_same() {
            self.rates.set(&key, wanted);
        }
        self.keys.add(&key, State::Parked(account), now);
    }
}
