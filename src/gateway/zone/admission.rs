//! Admission by a zone: its permit, and later changes of its charge.
//!
//! A *permit* is the right to run one request of a key, under a limit with `in_flight`. A *charge*
//! is what the key's bucket has counted for the request. `take_permits` takes the permits of a
//! request with several limits.

use limit::{Cost, Limit, Ticket};
use tokio::sync::oneshot;

use super::answer::{Answer, Charge, Grant, Rejection};
use super::join::{Key, NEW_KEYS};
use super::pending::PermitRequest;
use super::shards::Shards;
use crate::observe::metrics::{LimitStatus, PlanMetrics, Rejected};

/// Admission by one zone. If it is dropped unused, its charge is refunded.
pub struct ZoneAdmission<'z> {
    pub(super) shards: &'z Shards,
    /// Key of the request, even if another bucket admitted it (see `is_flood`).
    pub(super) key: Key,
    /// Metrics of the key's plan, if it has one.
    pub(super) plan: Option<&'z PlanMetrics>,
    pub(super) grant: Grant,
    pub(super) dry_run: bool,
    /// Whether the bucket that unknown keys share admitted it, not the key's own bucket.
    pub(super) is_flood: bool,
    /// Status to count when it is dropped unused; `None` once it is used.
    pub(super) unused: Option<LimitStatus>,
}

impl<'z> ZoneAdmission<'z> {
    /// Returns the actor's answer at the admission.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Returns whether the bucket that unknown keys share admitted it, not the key's own bucket.
    pub fn is_flood(&self) -> bool {
        self.is_flood
    }

    /// Returns the request's own key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the key of the bucket that admitted it.
    fn bucket_key(&self) -> Key {
        bucket_key(Some(&self.key), self.is_flood)
    }

    /// Uses the admission: the charge stays.
    ///
    /// Returns the request's permit, if it has one.
    pub fn take(mut self) -> Option<InFlightPermit<'z>> {
        self.use_up()
    }

    /// Does the same as [`take`](Self::take), for an admission that its owner drops later.
    pub fn use_up(&mut self) -> Option<InFlightPermit<'z>> {
        self.unused = None;
        let status = self.grant.status(self.dry_run);
        self.shards.metrics.count(self.plan, status);
        self.grant.permit.map(|ticket| InFlightPermit {
            shards: self.shards,
            key: self.bucket_key(),
            ticket,
        })
    }

    /// Requests the permit that the admission does not have yet, under this limit.
    ///
    /// Returns whether it got the permit. `waits`: whether to wait until a permit is free.
    ///
    /// # Errors
    ///
    /// The zone rejects the request. Then [withdraw](Self::withdraw) the admission.
    pub async fn request_permit(&mut self, limit: Limit, waits: bool) -> Result<bool, Rejection> {
        let Some(ticket) = self.grant.permit else {
            // The zone has ended, so it no longer limits.
            return Ok(true);
        };
        let key = self.bucket_key();
        let joined = match self.grant.charge {
            Charge::Own(charge) => charge.at(),
            _ => self.grant.at,
        };
        let (reply, answer) = oneshot::channel();
        let request = PermitRequest {
            ticket,
            limit,
            joined,
            waits,
            reply,
        };
        self.shards.send(&key, move |zone, key| {
            zone.if_active(key, move |actor, now, ctx| {
                actor.offer_permit(request, now, ctx);
            });
        });
        let mut rejection = match answer.await {
            Ok(Answer::ZoneAdmission(permit)) => {
                self.grant.prediction = permit.prediction;
                self.grant.due = self.grant.due.max(permit.due);
                self.grant.at = self.grant.at.max(permit.at);
                return Ok(true);
            }
            Ok(Answer::NoPermit) => return Ok(false),
            Ok(Answer::Rejected(rejection)) => rejection,
            // The request has settings of an earlier file, and the zone has ended since.
            Err(_) if self.shards.has_ended(&key) => return Ok(true),
            // The key's actor or the supervisor has panicked.
            Ok(Answer::UseNewKeysBucket(_)) | Err(_) => Rejection::soon(Rejected::Restart),
        };
        rejection.excess = self.grant.excess;
        rejection.is_flood = self.is_flood;
        self.shards
            .count_rejection(self.plan, &rejection, self.dry_run);
        Err(rejection)
    }

    /// Gives the permit back to the key but keeps the admission.
    ///
    /// The request will request it again, after the permit of another zone.
    pub fn put_permit_back(&self) {
        if let Some(ticket) = self.grant.permit {
            return_permit(self.shards, &self.bucket_key(), ticket, true);
        }
    }

    /// Gives up the admission: its zone has rejected the request later, and counted that.
    pub fn withdraw(mut self) {
        self.unused = None;
        give_back(self.shards, &self.bucket_key(), &self.grant);
    }

    /// Gives up the admission: another zone or the origin's gate rejected the request.
    pub fn reject_elsewhere(mut self) {
        self.unused = Some(LimitStatus::RejectedElsewhere);
    }

    /// Returns the charge of this admission, which can be changed after the use.
    pub fn used(&self) -> UsedAdmission<'z> {
        UsedAdmission {
            shards: self.shards,
            key: self.bucket_key(),
            charge: self.grant.charge,
        }
    }
}

/// Charge of a used admission. It can still be changed.
pub struct UsedAdmission<'z> {
    shards: &'z Shards,
    key: Key,
    charge: Charge,
}

impl UsedAdmission<'_> {
    /// Refunds the charge: later waiters move up.
    pub fn refund(self) {
        let (shards, charge) = (self.shards, self.charge);
        shards.send(&self.key, move |zone, key| zone.refund(key, charge));
    }

    /// Changes the charge to this cost.
    pub fn settle(self, cost: Cost) {
        let (shards, charge) = (self.shards, self.charge);
        shards.send(&self.key, move |zone, key| zone.settle(key, charge, cost));
    }
}

impl Drop for ZoneAdmission<'_> {
    fn drop(&mut self) {
        if let Some(status) = self.unused {
            give_back(self.shards, &self.bucket_key(), &self.grant);
            self.shards.metrics.count(self.plan, status);
        }
    }
}

/// Permit in use. Dropping it returns the permit, because the request has ended.
pub struct InFlightPermit<'z> {
    shards: &'z Shards,
    key: Key,
    ticket: Ticket,
}

impl Drop for InFlightPermit<'_> {
    fn drop(&mut self) {
        return_permit(self.shards, &self.key, self.ticket, false);
    }
}

/// Returns the key of a request's bucket: its own, or the one that unknown keys share.
pub(super) fn bucket_key(own: Option<&Key>, is_flood: bool) -> Key {
    let own = own.filter(|_| !is_flood);
    own.map_or_else(|| Key::from(NEW_KEYS), Key::clone)
}

/// Gives up an unused admission: refunds its charge and frees its permit.
pub(super) fn give_back(shards: &Shards, key: &Key, grant: &Grant) {
    let charge = grant.charge;
    shards.send(key, move |zone, key| zone.refund(key, charge));
    if let Some(ticket) = grant.permit {
        return_permit(shards, key, ticket, false);
    }
}

/// Frees a permit. `asks_again`: the request will request it again, after that of another zone.
fn return_permit(shards: &Shards, key: &Key, ticket: Ticket, asks_again: bool) {
    shards.send(key, move |zone, key| {
        zone.if_active(key, move |actor, _, _| {
            actor.return_permit(ticket, asks_again);
        });
    });
}
