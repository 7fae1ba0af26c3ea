//! Request that has joined one zone, as its caller sees it: admitted, rejected or waiting.
//!
//! If the zone accepts no more new keys, the request joins again, at the one bucket that unknown
//! keys share. Such a request is part of a *flood*.
//!
//! A *shard* of a zone is its part on one worker, with a *supervisor*. A key whose requests wait
//! has an *actor* in its shard, which keeps the queue.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use limit::Ticket;
use tokio::sync::oneshot;

use super::admission::{ZoneAdmission, bucket_key, give_back};
use super::answer::{Answer, Grant, Rejection};
use super::join::{Join, Key};
use super::shards::Shards;
use crate::observe::metrics::{LimitStatus, PlanMetrics, Rejected};

/// State of a request right after it has joined one zone.
pub enum Joined<'z> {
    /// The request is admitted.
    ZoneAdmission(ZoneAdmission<'z>),
    /// The request is rejected. The key is the request's own.
    Rejected(Key, Rejection),
    /// The request waits.
    Waiting(Joining<'z>),
}

/// Request that waits for admission to one zone.
///
/// If it is dropped before the answer, it leaves the queue. If it is dropped while the answer is in
/// transit, the admission is refunded.
pub struct Joining<'z> {
    shards: &'z Shards,
    /// Key of the request; `None` once its [`ZoneAdmission`] has it.
    key: Option<Key>,
    /// Metrics of the key's plan, if it has one.
    plan: Option<&'z PlanMetrics>,
    ticket: Ticket,
    dry_run: bool,
    /// Whether it waits at the bucket that unknown keys share.
    is_flood: bool,
    /// Status to count if this is dropped before the answer has been received.
    unused: LimitStatus,
    answer: oneshot::Receiver<Answer>,
    /// Whether the answer has been received.
    is_answered: bool,
}

impl<'z> Joined<'z> {
    /// Joins the zone with these shards. `plan`: metrics of the key's plan.
    pub(super) fn new(shards: &'z Shards, plan: Option<&'z PlanMetrics>, join: Join) -> Self {
        match shards.join(&join) {
            Ok(Answer::ZoneAdmission(grant)) => Self::ZoneAdmission(ZoneAdmission {
                shards,
                key: join.key,
                plan,
                grant,
                dry_run: join.dry_run,
                is_flood: false,
                unused: Some(LimitStatus::Cancelled),
            }),
            Ok(Answer::Rejected(rejection)) => {
                shards.count_rejection(plan, &rejection, join.dry_run);
                Self::Rejected(join.key, rejection)
            }
            // The answer comes later, or the request must join again: `Joining` does both.
            answer => Self::Waiting(Joining::new(answer, shards, plan, join)),
        }
    }
}

/// Returns a receiver of an answer. An answer that is there already is sent to the receiver.
fn receiver(answer: Result<Answer, oneshot::Receiver<Answer>>) -> oneshot::Receiver<Answer> {
    match answer {
        Ok(answer) => {
            let (reply, receiver) = oneshot::channel();
            // The receiver exists, so this cannot fail.
            let _sent = reply.send(answer);
            receiver
        }
        Err(receiver) => receiver,
    }
}

impl<'z> Joining<'z> {
    /// Creates the request that waits for this answer.
    pub(super) fn new(
        answer: Result<Answer, oneshot::Receiver<Answer>>,
        shards: &'z Shards,
        plan: Option<&'z PlanMetrics>,
        join: Join,
    ) -> Self {
        Self {
            shards,
            key: Some(join.key),
            plan,
            ticket: join.ticket,
            dry_run: join.dry_run,
            is_flood: false,
            unused: LimitStatus::Cancelled,
            answer: receiver(answer),
            is_answered: false,
        }
    }

    /// Returns the request's own key, until its [`ZoneAdmission`] has it.
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Takes the request's own key, after a rejection. An admission takes it itself.
    pub fn take_key(&mut self) -> Key {
        self.key.take().unwrap_or_default()
    }

    /// Returns whether the zone decides as usual but lets the request pass in any case.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Leaves the queue, because another zone rejected the request.
    pub fn reject_elsewhere(mut self) {
        self.unused = LimitStatus::RejectedElsewhere;
    }

    /// Returns the key of the bucket that decides.
    fn bucket_key(&self) -> Key {
        bucket_key(self.key.as_ref(), self.is_flood)
    }

    /// Creates the admission, and moves the key into it.
    fn admission(&mut self, grant: Grant) -> ZoneAdmission<'z> {
        ZoneAdmission {
            shards: self.shards,
            key: self.take_key(),
            plan: self.plan,
            grant,
            dry_run: self.dry_run,
            is_flood: self.is_flood,
            unused: Some(LimitStatus::Cancelled),
        }
    }
}

impl<'z> Future for Joining<'z> {
    type Output = Result<ZoneAdmission<'z>, Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = loop {
            // The result has been returned already, and no other follows.
            if self.is_answered {
                return Poll::Pending;
            }
            match ready!(Pin::new(&mut self.answer).poll(cx)) {
                Ok(Answer::UseNewKeysBucket(join)) => {
                    self.is_flood = true;
                    self.shards.metrics.flooded.add(1);
                    self.answer = receiver(self.shards.join(&join.of_new_keys()));
                }
                answer => break answer,
            }
        };
        self.is_answered = true;
        let mut rejection = match answer {
            Ok(Answer::ZoneAdmission(grant)) => return Poll::Ready(Ok(self.admission(grant))),
            Ok(Answer::Rejected(rejection)) => rejection,
            // The request has settings of an earlier file, and the zone has ended since.
            Err(_) if self.shards.has_ended(&self.bucket_key()) => {
                return Poll::Ready(Ok(self.admission(Grant::unlimited())));
            }
            // Without an answer, the key's actor or the supervisor has panicked: a stop answers
            // every waiter. The other answers do not occur here.
            Ok(Answer::UseNewKeysBucket(_) | Answer::NoPermit) | Err(_) => {
                Rejection::soon(Rejected::Restart)
            }
        };
        rejection.is_flood = self.is_flood;
        self.shards
            .count_rejection(self.plan, &rejection, self.dry_run);
        Poll::Ready(Err(rejection))
    }
}

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        // Close first. Then either the answer is here already, or the actor cannot answer any more.
        self.answer.close();
        match self.answer.try_recv() {
            Ok(Answer::ZoneAdmission(grant)) => give_back(self.shards, &self.bucket_key(), &grant),
            Ok(Answer::Rejected(_) | Answer::UseNewKeysBucket(_) | Answer::NoPermit) => {}
            Err(_) => {
                let ticket = self.ticket;
                // If the key still has an actor, the request leaves its queue.
                self.shards.send(&self.bucket_key(), move |zone, key| {
                    zone.if_active(key, move |actor, now, _| actor.leave(ticket, now));
                });
            }
        }
        self.shards.metrics.count(self.plan, self.unused);
    }
}
