//! Admission by a zone: its permit, and later changes of its charge.
//!
//! [`take_permits`] takes the permits of a request with several limits.

use limit::{Cost, Limit, Ticket};
use tokio::sync::{Semaphore, oneshot};

use super::answer::{Answer, Charge, Grant, Rejection};
use super::join::{Key, NEW_KEYS};
use super::pending::PermitRequest;
use super::shards::Shards;
use crate::observe::metrics::{LimitStatus, PlanMetrics, Rejected};

/// Admission by one zone. If it is dropped unused, its charge is refunded.
pub struct ZoneAdmission<'z> {
    pub(super) shards: &'z Shards,
    /// Key of the request, not of the bucket that unknown keys share.
    pub(super) key: Key,
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

    /// Does the same as [`Self::take`], without a move of the admission, which is dropped later.
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

    /// Asks for the permit that the admission does not have yet, under this limit.
    ///
    /// Returns whether it got the permit. `waits`: whether to wait until one is free.
    ///
    /// # Errors
    ///
    /// The zone rejects the request. Then [withdraw](Self::withdraw) the admission.
    pub async fn request_permit(&mut self, limit: Limit, waits: bool) -> Result<bool, Rejection> {
        let Some(ticket) = self.grant.permit else {
            // The zone no longer limits.
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

    /// Returns the permit but keeps the admission.
    ///
    /// The request first waits for the permit of another zone.
    pub fn put_permit_back(&self) {
        if let Some(ticket) = self.grant.permit {
            return_permit(self.shards, &self.bucket_key(), ticket, true);
        }
    }

    /// Gives up the admission, because its own zone has rejected the request and counted it.
    pub fn withdraw(mut self) {
        self.unused = None;
        give_back(self.shards, &self.bucket_key(), &self.grant);
    }

    /// Gives up the admission, because another zone or the origin's gate rejected the request.
    pub fn reject_elsewhere(mut self) {
        self.unused = Some(LimitStatus::RejectedElsewhere);
    }

    /// Returns the charge of this admission, to be changed after its use.
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
        let charge = self.charge;
        self.shards
            .send(&self.key, move |zone, key| zone.refund(key, charge));
    }

    /// Changes the charge to this cost.
    pub fn settle(self, cost: Cost) {
        let charge = self.charge;
        self.shards
            .send(&self.key, move |zone, key| zone.settle(key, charge, cost));
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

/// Permit: the right of a request to run, until this is dropped.
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

/// Frees a permit. `asks_again`: the request will ask for it again, after one of another zone.
fn return_permit(shards: &Shards, key: &Key, ticket: Ticket, asks_again: bool) {
    shards.send(key, move |zone, key| {
        zone.if_active(key, move |actor, _, _| {
            actor.return_permit(ticket, asks_again);
        });
    });
}

/// Number of failed attempts after which a request may [keep](KEEPING) the permits that it gets.
const ATTEMPTS_BEFORE_KEEPING: usize = 8;

/// Right to keep permits while waiting for others. One request of the process has it at a time.
///
/// Without it, a request might never find all its permits free at the same instant. All other
/// requests hold no permits while they wait, so a process has no deadlock. Each gateway that shares
/// the zones has one such request, and all of them take permits in the same order.
static KEEPING: Semaphore = Semaphore::const_new(1);

/// Takes the permits of a request with these admissions, under these limits.
///
/// Returns the admissions with their permits. The order of the zones is the same for all requests.
///
/// The request waits in the queue of one zone at a time, in the order of arrival. Once it has a
/// permit there, it tries to take the permits of the other zones. If one is not free, it returns
/// all its permits, and waits in the queue of that zone.
///
/// # Errors
///
/// A zone rejects the request. Returns the rejection and the index of its limit. Then all
/// admissions have been given up.
pub async fn take_permits<'z>(
    mut admissions: Vec<ZoneAdmission<'z>>,
    limits: &[Limit],
) -> Result<Vec<ZoneAdmission<'z>>, (usize, Rejection)> {
    match take_all(&mut admissions, limits).await {
        Ok(()) => Ok(admissions),
        Err((index, rejection)) => {
            admissions.remove(index).withdraw();
            admissions
                .into_iter()
                .for_each(ZoneAdmission::reject_elsewhere);
            Err((index, rejection))
        }
    }
}

/// Takes the permits of all admissions, in as many attempts as needed.
async fn take_all(
    admissions: &mut [ZoneAdmission<'_>],
    limits: &[Limit],
) -> Result<(), (usize, Rejection)> {
    let (mut failed_attempts, mut first) = (0, 0);
    loop {
        let may_keep = failed_attempts >= ATTEMPTS_BEFORE_KEEPING;
        let keeping = may_keep.then(|| KEEPING.try_acquire().ok()).flatten();
        let mut order: Vec<usize> = (0..admissions.len()).collect();
        // Begin with the zone that had no free permit last time, unless permits are kept.
        if keeping.is_none() {
            order[..=first].rotate_right(1);
        }
        let mut taken = 0;
        for &index in &order {
            let waits = taken == 0 || keeping.is_some();
            let answer = admissions[index].request_permit(limits[index], waits);
            let has_permit = answer.await.map_err(|rejection| (index, rejection))?;
            if !has_permit {
                break;
            }
            taken += 1;
        }
        if taken == order.len() {
            return Ok(());
        }
        for &index in &order[..taken] {
            admissions[index].put_permit_back();
        }
        (failed_attempts, first) = (failed_attempts + 1, order[taken]);
    }
}
