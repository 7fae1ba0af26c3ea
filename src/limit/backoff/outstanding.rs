//! Outstanding requests: requests without an answer, in the order in which they were sent.
//!
//! `slow` is the configured time from which an answer is slow. A request that has waited longer is
//! *overdue*.

use std::time::Duration;

use crate::Moment;
use crate::chain::{Chain, Nodes};

/// Requests without an answer, in the order in which they were sent.
///
/// The memory is bounded by the largest number of requests that were outstanding at once.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// All of them. The index of a request is its slot.
    sent: Nodes<SentRequest>,
    /// Requests that were not past `slow` at the last check.
    in_time: Chain,
    /// Requests that are past `slow`.
    overdue: Chain,
}

#[derive(Debug)]
struct SentRequest {
    /// Instant at which it was sent.
    at: Moment,
    /// Hash of the key by which the request shares the gate. `None`: it has no key.
    key: Option<u64>,
    is_overdue: bool,
}

impl Outstanding {
    /// Adds a request sent at `at`, which must not be before any other. Returns its slot.
    pub fn add(&mut self, at: Moment, key: Option<u64>) -> u32 {
        let slot = self.sent.add(SentRequest {
            at,
            key,
            is_overdue: false,
        });
        self.in_time.push(&mut self.sent, slot);
        slot
    }

    /// Sets the key of the request of a slot. The slot must be in use.
    pub fn set_key(&mut self, slot: u32, key: u64) {
        if let Some(sent) = self.sent.get_mut(slot) {
            sent.key = Some(key);
        }
    }

    /// Removes the request of a slot. The slot must be in use.
    pub fn remove(&mut self, slot: u32) {
        let Some(sent) = self.sent.get(slot) else {
            return;
        };
        let chain = if sent.is_overdue {
            &mut self.overdue
        } else {
            &mut self.in_time
        };
        chain.unlink(&mut self.sent, slot);
        self.sent.remove(slot);
    }

    /// Returns the number of requests that were sent more than `slow` before `now`.
    pub fn overdue(&mut self, slow: Duration, now: Moment) -> u64 {
        while let Some(first) = self.in_time.first()
            && now.since(self.sent[first].at) > slow
        {
            self.in_time.unlink(&mut self.sent, first);
            self.sent[first].is_overdue = true;
            self.overdue.push(&mut self.sent, first);
        }
        self.overdue.len().into()
    }

    /// Returns the keys of the requests that the last call of [`overdue`](Self::overdue) found.
    pub fn overdue_keys(&self) -> impl Iterator<Item = Option<u64>> {
        let last = self.overdue.last();
        let slots = std::iter::successors(last, |slot| Chain::before(&self.sent, *slot));
        slots.map(|slot| self.sent[slot].key)
    }

    /// Removes all requests. Their slots must not be used any more.
    pub fn clear(&mut self) {
        self.sent.clear();
        (self.in_time, self.overdue) = (Chain::default(), Chain::default());
    }
}
