//! Reports of the keys that wait at a gate, to the store that gateways share.
//!
//! A key that waits at `n` gateways has an `n`th of its weight at each of them. So it gets as many
//! slots as at one gate for all. A *claim* is a query of a gate to the store. Each claim reports
//! the changes of the waiting keys since the last claim. When the store has lost the reports, it
//! begins a new *generation* of keys, and each gate reports all its keys again.

use std::hash::Hash;
use std::num::NonZeroU16;

use super::Gate;
use crate::KeyChange;
use crate::fair_queue::FairQueue;

/// Upper bound of the key changes in a claim. The next claim reports the rest.
const MAX_CHANGES: usize = 200;

/// Report of waiting keys in a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyReport {
    /// Generation of keys that the gateway knows. 0: none, so there are no changes.
    pub generation: u64,
    /// Number of this claim.
    pub claim: u64,
    /// Number of the last claim that was answered.
    pub answered: u64,
    /// Keys that began or stopped waiting, or changed their weight.
    pub changes: Vec<KeyChange>,
}

/// Answer of the store to a [`KeyReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyNews {
    /// Whether the store has recorded the changes. If not, the gateway must report all its keys
    /// under the new `generation`.
    pub is_noted: bool,
    /// Generation of keys that applies from now on.
    pub generation: u64,
    /// Hash of a key of this gateway, and the number of gateways at which it waits now.
    ///
    /// 0 gateways: news of keys were lost, so all keys must be reported again.
    pub gateways: Vec<(u64, u16)>,
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Reports keys by this hash, which is the same at all gateways.
    ///
    /// Without it, only the sum of their weights is reported.
    pub fn name_keys_by(&mut self, name: fn(&K) -> u64) {
        self.key_name = Some(name);
    }

    /// Returns the report of waiting keys for the next claim.
    pub(super) fn key_report(&mut self) -> KeyReport {
        let is_fair = self.limits.queue.is_some();
        let is_out = self.is_out();
        let Some(granted) = &mut self.granted else {
            return KeyReport::default();
        };
        let Some(name) = self.key_name.filter(|_| is_fair) else {
            self.stop_key_reporting();
            return KeyReport::default();
        };
        if granted.last_report.is_none() {
            self.waiting.name_keys(Some(name));
        }
        let last_report = granted.last_report.get_or_insert_default();
        last_report.claim += 1;
        let mut changes = Vec::new();
        for keys in self.waiting.queues().filter_map(FairQueue::named) {
            keys.hide(is_out);
            if last_report.generation > 0 {
                keys.take_changes(MAX_CHANGES, &mut changes);
            }
        }
        KeyReport {
            changes,
            ..last_report.clone()
        }
    }

    /// Stops the reports: all keys count in full. A later report starts with all keys.
    pub(super) fn stop_key_reporting(&mut self) {
        let last_report = self.granted.as_mut().and_then(|it| it.last_report.take());
        if last_report.is_some() {
            self.waiting.name_keys(None);
        }
    }

    /// Applies the store's answer to the last report.
    pub(super) fn receive_key_news(&mut self, news: &KeyNews) {
        let granted = self.granted.as_mut();
        let Some(last_report) = granted.and_then(|it| it.last_report.as_mut()) else {
            return;
        };
        last_report.answered = last_report.claim;
        if !news.is_noted {
            last_report.generation = news.generation;
        }
        for queue in self.waiting.queues() {
            if !news.is_noted {
                queue.forget_reported();
                continue;
            }
            queue.record_applied();
            for (key, gateways) in &news.gateways {
                match NonZeroU16::new(*gateways) {
                    Some(gateways) => queue.set_gateways_of_key(*key, gateways),
                    None => queue.report_again(),
                }
            }
        }
    }

    /// Records that the last report was not answered.
    pub(super) fn keys_unanswered(&mut self) {
        for keys in self.waiting.queues().filter_map(FairQueue::named) {
            keys.unanswered();
        }
    }
}
