//! Which keys wait at a gate, told to the store that gateways share.
//!
//! A key that waits at several gateways counts at each as one of so many equal parts: its turns are
//! what one gate would give it. Each claim tells what has changed since the last one.

use std::hash::Hash;
use std::num::NonZeroU16;

use super::Gate;
use crate::KeyChange;
use crate::fair_queue::FairQueue;

/// Most changes of keys that a claim tells. The next one tells the others.
const MAX_CHANGES: usize = 200;

/// What a claim tells of the keys that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyReport {
    /// Which generation of keys the gateway knows; 0: none.
    pub generation: u64,
    /// The number of the claim.
    pub claim: u64,
    /// The number of the last claim that was answered.
    pub answered: u64,
    /// Keys that have begun to wait, wait no longer, or have another weight.
    pub changes: Vec<KeyChange>,
}

/// What the store answers to a [`KeyReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyNews {
    /// Whether the changes were noted. If not, the gateway has to tell all its keys.
    pub is_noted: bool,
    /// The generation of keys that counts from now on.
    pub generation: u64,
    /// Keys of this gateway, by what they hash to, and at how many gateways they wait; 0: news were
    /// lost, and all keys have to be told again.
    pub gateways: Vec<(u64, u16)>,
}

/// How far a gate has told its keys.
#[derive(Debug, Default)]
pub(super) struct Telling {
    generation: u64,
    claim: u64,
    answered: u64,
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Tells keys to the gates that share the grid, by this hash, which all gateways have alike.
    ///
    /// Without it, only their weights together are told.
    pub fn name_keys_by(&mut self, name: fn(&K) -> u64) {
        self.key_name = Some(name);
    }

    /// What the next claim tells of the keys that wait.
    pub(super) fn key_report(&mut self) -> KeyReport {
        let is_fair = self.limits.queue.is_some();
        let is_out = self.is_out();
        let Some(granted) = &mut self.granted else {
            return KeyReport::default();
        };
        let Some(name) = self.key_name.filter(|_| is_fair) else {
            self.stop_telling();
            return KeyReport::default();
        };
        if granted.telling.is_none() {
            self.waiting.name_keys(Some(name));
        }
        let telling = granted.telling.get_or_insert_default();
        telling.claim += 1;
        let mut changes = Vec::new();
        for keys in self.waiting.queues().filter_map(FairQueue::named) {
            keys.hide(is_out);
            if telling.generation > 0 {
                keys.take_changes(MAX_CHANGES, &mut changes);
            }
        }
        KeyReport {
            generation: telling.generation,
            claim: telling.claim,
            answered: telling.answered,
            changes,
        }
    }

    /// All keys count whole from now on. Later, all are told anew.
    pub(super) fn stop_telling(&mut self) {
        let telling = self.granted.as_mut().and_then(|it| it.telling.take());
        if telling.is_some() {
            self.waiting.name_keys(None);
        }
    }

    /// The store has answered the last report.
    pub(super) fn hear_keys(&mut self, news: &KeyNews) {
        let telling = self.granted.as_mut().and_then(|it| it.telling.as_mut());
        let Some(telling) = telling else {
            return;
        };
        telling.answered = telling.claim;
        if !news.is_noted {
            telling.generation = news.generation;
        }
        for queue in self.waiting.queues() {
            if !news.is_noted {
                queue.forget_told();
                continue;
            }
            queue.changes_noted();
            for (key, gateways) in &news.gateways {
                match NonZeroU16::new(*gateways) {
                    Some(gateways) => queue.waits_at(*key, gateways),
                    None => queue.tell_again(),
                }
            }
        }
    }

    /// The last report was not answered.
    pub(super) fn keys_unanswered(&mut self) {
        for keys in self.waiting.queues().filter_map(FairQueue::named) {
            keys.unanswered();
        }
    }
}
