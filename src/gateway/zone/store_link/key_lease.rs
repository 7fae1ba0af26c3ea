//! Lease of one key, and the joins that wait for its slots.

use std::collections::VecDeque;
use std::time::Duration;

use limit::{Algorithm, Lease, LeaseAnswer, Leased, Limit, Moment, Rate, Refusal, Verdict};

use super::Decision;
use super::ask::Reply;
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

/// Lease of a key, and what is known of the key.
pub(super) struct KeyLease {
    /// Leased slots, and the store's last refusal.
    pub(super) lease: Lease<Decision>,
    /// Last use of the key.
    pub(super) used: Moment,
    /// Rate under which the slots were taken.
    pub(super) rate: Option<Rate>,
    /// Number of joins that the store is deciding.
    pub(super) under_way: usize,
    /// Whether leased slots are on their way with one of these joins.
    pub(super) is_refilled: bool,
    /// Joins that wait for slots in transit, in their order.
    pub(super) waiting: VecDeque<LeasingJoin>,
    /// Number of times that all slots were removed.
    pub(super) version: u64,
    /// Version before which the store has forgotten all charges.
    pub(super) forgotten: u64,
}

impl KeyLease {
    pub(super) fn new(limit: Limit, now: Moment) -> Self {
        Self {
            lease: Lease::new(limit, now),
            used: now,
            rate: None,
            under_way: 0,
            is_refilled: false,
            waiting: VecDeque::new(),
            version: 0,
            forgotten: 0,
        }
    }

    /// Returns whether the key has no slots, no waiting joins and no joins at the store.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way == 0 && self.waiting.is_empty() && self.lease.slots() == 0
    }

    /// Decides a join at `now` from the lease; `None` if the store must decide.
    pub(super) fn take(&mut self, limit: Limit, now: Moment) -> Option<Decision> {
        let decision = match self.lease.take(limit, now)? {
            LeaseAnswer::Refused(decision) => return Some(decision),
            LeaseAnswer::Slot(decision) => decision,
        };
        let verdict = match decision.verdict {
            Verdict::Delay { until, excess } if until <= now => Verdict::Pass { excess },
            verdict => verdict,
        };
        Some(Decision {
            verdict,
            ..decision
        })
    }

    /// Removes and returns all slots. Slots in transit will not be added to the lease.
    pub(super) fn clear(&mut self) -> Vec<Leased<Decision>> {
        self.version += 1;
        self.lease.clear()
    }

    /// Adds slots from the store, and its refusal. Returns the slots to give back.
    pub(super) fn add_refill(
        &mut self,
        refill: &Refill,
        reported: Refilled,
    ) -> Vec<Leased<Decision>> {
        let (link, mut stale) = (&refill.link, Vec::new());
        let is_stale = refill.version != self.version;
        for (nth, decision) in reported.decisions.into_iter().enumerate() {
            self.rate = Some(decision.in_force.rate);
            let Some(usable_until) = decision.usable_until else {
                if let Verdict::Reject(_) = decision.verdict
                    && !is_stale
                {
                    self.refuse(refill, decision, reported.asked);
                }
                break;
            };
            if nth == 0 {
                self.lease.note_granted(usable_until);
                continue;
            }
            // Tokens cannot be given back: others may have a later slot that depends on this one.
            let ends = match link.settings.algorithm {
                Algorithm::TokenBucket => usable_until,
                _ => usable_until.min(reported.asked + link.settings.lease),
            };
            let slot = Leased {
                slot: decision,
                usable_until,
                ends,
            };
            if is_stale {
                stale.push(slot);
            } else {
                self.lease.add(slot);
            }
        }
        if refill.version < self.forgotten {
            return Vec::new();
        }
        stale.reverse();
        stale
    }

    /// Refuses later joins as the store refused a request at `asked`.
    fn refuse(&mut self, refill: &Refill, decision: Decision, asked: Moment) {
        let Verdict::Reject(refusal) = decision.verdict else {
            return;
        };
        let terms = refill.link.terms(&refill.key, self.rate);
        // The excess is the level with the refused request.
        let interval = terms.rate.interval();
        let drains_in = Duration::try_from_secs_f64(
            interval.as_secs_f64() * (refusal.excess.requests() - 1.0).max(0.0),
        );
        let drains_in = drains_in.unwrap_or(Duration::MAX);
        let (lease, retry_at) = (&mut self.lease, refusal.retry_at);
        let until = lease.refuses_until(&terms, asked, retry_at, drains_in);
        let reported = Verdict::Reject(Refusal {
            retry_at: retry_at.max(until),
            ..refusal
        });
        let decision = Decision {
            verdict: reported,
            ..decision
        };
        lease.refuse(refill.limit, decision, until);
    }
}
