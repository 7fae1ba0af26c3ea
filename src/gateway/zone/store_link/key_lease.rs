//! Lease of one key: slots taken in advance from the store, and the joins that wait for them.
//!
//! A *slot* is a departure time. A *refill* requests further slots, together with a join that the
//! store decides.

use std::collections::VecDeque;
use std::time::Duration;

use limit::{Algorithm, Lease, LeaseAnswer, Leased, Limit, Moment, Rate, Refusal, Verdict};

use super::Decision;
use super::charge_request::Reply;
use super::refill::{Refill, Refilled};
use crate::zone::join::Key;

/// Join at a zone that takes leases.
pub(super) struct LeasingJoin {
    pub(super) key: Key,
    pub(super) limit: Limit,
    /// Time of the join.
    pub(super) since: Moment,
    pub(super) reply: Reply<Decision>,
}

/// Lease of a key, with the joins of the key that wait for its slots.
pub(super) struct KeyLease {
    /// Leased slots, and the store's last refusal.
    pub(super) lease: Lease<Decision>,
    /// Last use of the key.
    pub(super) used: Moment,
    /// Rate under which the slots were taken.
    pub(super) rate: Option<Rate>,
    /// Number of joins that the store is deciding.
    pub(super) joins_at_store: usize,
    /// Whether one of these joins brings slots for the lease.
    pub(super) is_refilling: bool,
    /// Joins that wait for slots in transit, in their order.
    pub(super) waiting: VecDeque<LeasingJoin>,
    /// Number of times that all slots were removed. A refill of an earlier version is stale.
    pub(super) version: u64,
    /// First version after the store has forgotten all charges of the key.
    pub(super) forgotten: u64,
}

impl KeyLease {
    pub(super) fn new(limit: Limit, now: Moment) -> Self {
        Self {
            lease: Lease::new(limit, now),
            used: now,
            rate: None,
            joins_at_store: 0,
            is_refilling: false,
            waiting: VecDeque::new(),
            version: 0,
            forgotten: 0,
        }
    }

    /// Returns whether the key has no slots, no waiting joins and no joins at the store.
    pub(super) fn is_idle(&self) -> bool {
        self.joins_at_store == 0 && self.waiting.is_empty() && self.lease.slots() == 0
    }

    /// Decides a join at `now` from the lease; `None` if the store must decide.
    pub(super) fn take(&mut self, limit: Limit, now: Moment) -> Option<Decision> {
        let mut decision = match self.lease.take(limit, now)? {
            LeaseAnswer::Refused(decision) => return Some(decision),
            LeaseAnswer::Slot(decision) => decision,
        };
        // The store gave the slot with a delay that may be over by now.
        if let Verdict::Delay { until, excess } = decision.verdict
            && until <= now
        {
            decision.verdict = Verdict::Pass { excess };
        }
        Some(decision)
    }

    /// Takes the first waiting joins that the lease decides at `now`, with their decisions.
    ///
    /// Takes none while slots are in transit.
    pub(super) fn decide_waiting(&mut self, now: Moment) -> Vec<(LeasingJoin, Decision)> {
        let mut decided = Vec::new();
        while !self.is_refilling
            && let Some(first) = self.waiting.pop_front()
        {
            let Some(decision) = self.take(first.limit, now) else {
                self.waiting.push_front(first);
                break;
            };
            decided.push((first, decision));
        }
        decided
    }

    /// Removes and returns all slots. Slots in transit will not be added to the lease.
    pub(super) fn clear(&mut self) -> Vec<Leased<Decision>> {
        self.version += 1;
        self.lease.clear()
    }

    /// Adds the slots of a refill, or the store's refusal. Returns the slots to give back.
    pub(super) fn add_refill(
        &mut self,
        refill: &Refill,
        reported: Refilled,
    ) -> Vec<Leased<Decision>> {
        let settings = &refill.link.settings;
        let mut given_back = Vec::new();
        let is_stale = refill.version != self.version;
        for (nth, decision) in reported.decisions.into_iter().enumerate() {
            self.rate = Some(decision.in_force.rate);
            let Some(usable_until) = decision.usable_until else {
                if let Verdict::Reject(refusal) = decision.verdict
                    && !is_stale
                {
                    self.refuse(refill, decision, refusal, reported.asked);
                }
                break;
            };
            if nth == 0 {
                // This slot is the join's own.
                self.lease.note_granted(usable_until);
                continue;
            }
            // Tokens cannot be given back: others may have a later slot that depends on this one.
            // So their lease lasts as long as they can be used.
            let ends = match settings.algorithm {
                Algorithm::TokenBucket => usable_until,
                _ => usable_until.min(reported.asked + settings.lease),
            };
            let slot = Leased {
                slot: decision,
                usable_until,
                ends,
            };
            if is_stale {
                given_back.push(slot);
            } else {
                self.lease.add(slot);
            }
        }
        if refill.version < self.forgotten {
            // The store has forgotten their charges, so there is nothing to refund.
            return Vec::new();
        }
        // The last slot is given back first.
        given_back.reverse();
        given_back
    }

    /// Refuses later joins for a while, as the store refused a request that was sent at `asked`.
    fn refuse(
        &mut self,
        refill: &Refill,
        mut decision: Decision,
        mut refusal: Refusal,
        asked: Moment,
    ) {
        let terms = refill.link.terms(&refill.key, self.rate);
        // `excess` is the level with the refused request.
        let level = (refusal.excess.requests() - 1.0).max(0.0);
        let drains_in = terms.rate.interval().as_secs_f64() * level;
        let drains_in = Duration::try_from_secs_f64(drains_in).unwrap_or(Duration::MAX);
        let lease = &mut self.lease;
        let until = lease.refusal_end(&terms, asked, refusal.retry_at, drains_in);
        refusal.retry_at = refusal.retry_at.max(until);
        decision.verdict = Verdict::Reject(refusal);
        lease.refuse(refill.limit, decision, until);
    }
}
