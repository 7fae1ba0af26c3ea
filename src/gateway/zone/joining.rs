use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use limit::{Excess, Limit, Onward, Ticket};
use tokio::sync::oneshot;

use super::answer::{Answer, Grant, Key, NEW_KEYS, RETRY_SOON, Rejection};
use super::messages::Leave;
use super::shards::Shards;
use super::supervisor::JoinRequest;
use super::ticket::RequestTicket;
use super::turn::{Turn, bucket_key, give_back};
use super::unused::Unused;
use crate::observe::metrics::{PlanMetrics, Rejected};

/// A request that waits for its turn in one zone.
///
/// If it is dropped before it is answered, it leaves the queue. If it is dropped while an answer
/// is on its way, the turn is given back.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is of its own")]
pub struct Joining<'z> {
    shards: &'z Shards,
    /// The request's own key; `None` once its turn has it.
    key: Option<Key>,
    /// Those of the plan of the key, if it has one.
    plan: Option<&'z PlanMetrics>,
    ticket: Ticket,
    onward: Option<Onward>,
    places_later: bool,
    dry_run: bool,
    /// Whether it waits at the bucket that unknown keys share.
    is_flood: bool,
    /// What it counts as if its turn is not used.
    unused: Unused,
    answer: oneshot::Receiver<Answer>,
    /// Whether the answer is here.
    is_answered: bool,
}

impl<'z> Joining<'z> {
    pub(super) fn new(
        shards: &'z Shards,
        key: Key,
        plan: Option<&'z PlanMetrics>,
        limit: Limit,
        dry_run: bool,
        request: RequestTicket,
    ) -> Self {
        let answer = coming(ask(shards, &key, limit, dry_run, request));
        Self::answered_by(answer, shards, key, plan, dry_run, request)
    }

    fn answered_by(
        answer: oneshot::Receiver<Answer>,
        shards: &'z Shards,
        key: Key,
        plan: Option<&'z PlanMetrics>,
        dry_run: bool,
        request: RequestTicket,
    ) -> Self {
        let RequestTicket {
            ticket,
            onward,
            places_later,
        } = request;
        Self {
            shards,
            key: Some(key),
            plan,
            ticket,
            onward,
            places_later,
            dry_run,
            is_flood: false,
            unused: Unused::Cancelled,
            answer,
            is_answered: false,
        }
    }
}

/// A request that has asked one zone for a turn.
#[derive(Debug)]
pub enum Joined<'z> {
    /// It has its turn.
    Turn(Turn<'z>),
    /// It is rejected. The key is the request's own.
    Rejected(Key, Rejection),
    /// It waits.
    Waiting(Joining<'z>),
}

impl<'z> Joined<'z> {
    pub(super) fn ask(
        shards: &'z Shards,
        key: Key,
        plan: Option<&'z PlanMetrics>,
        limit: Limit,
        dry_run: bool,
        request: RequestTicket,
    ) -> Self {
        match ask(shards, &key, limit, dry_run, request) {
            Ok(Answer::Turn(grant)) => {
                Self::Turn(Turn::new(shards, key, plan, grant, dry_run, false))
            }
            Ok(Answer::Rejected(rejection)) => {
                shards.count_rejection(plan, &rejection, dry_run);
                Self::Rejected(key, rejection)
            }
            answer => Self::Waiting(Joining::answered_by(
                coming(answer),
                shards,
                key,
                plan,
                dry_run,
                request,
            )),
        }
    }
}

/// Asks the supervisor of `key` for a turn.
fn ask(
    shards: &Shards,
    key: &Key,
    limit: Limit,
    dry_run: bool,
    request: RequestTicket,
) -> Result<Answer, oneshot::Receiver<Answer>> {
    shards.ask(&JoinRequest {
        key,
        limit,
        dry_run,
        ticket: request.ticket,
        onward: request.onward,
        places_later: request.places_later,
    })
}

/// Returns where an answer comes that may be here already.
fn coming(answer: Result<Answer, oneshot::Receiver<Answer>>) -> oneshot::Receiver<Answer> {
    answer.map_or_else(
        |coming| coming,
        |answer| {
            let (reply, coming) = oneshot::channel();
            // The receiver is here.
            let _sent = reply.send(answer);
            coming
        },
    )
}

impl<'z> Joining<'z> {
    /// Joins the bucket that unknown keys share, instead of that of the request's own key.
    fn join_flood(&mut self, limit: Limit) -> oneshot::Receiver<Answer> {
        self.is_flood = true;
        self.shards.metrics().flooded.add(1);
        let key = Key::from(NEW_KEYS);
        let request = RequestTicket {
            ticket: self.ticket,
            onward: self.onward,
            places_later: self.places_later,
        };
        coming(ask(self.shards, &key, limit, self.dry_run, request))
    }

    /// Returns the request's own key, until its turn has it.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Takes the request's own key, once it is rejected. Its turn has the key otherwise.
    pub fn take_key(&mut self) -> Key {
        self.key.take().unwrap_or_default()
    }

    /// Whether its zone decides as usual, and lets it pass all the same.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Returns the key of the bucket that decides.
    fn bucket_key(&self) -> Key {
        bucket_key(self.key.as_ref(), self.is_flood)
    }

    /// Leaves the queue, because another zone rejected the request.
    pub fn reject_elsewhere(mut self) {
        self.unused = Unused::RejectedElsewhere;
    }

    fn turn(&mut self, grant: Grant) -> Turn<'z> {
        let key = self.take_key();
        Turn::new(
            self.shards,
            key,
            self.plan,
            grant,
            self.dry_run,
            self.is_flood,
        )
    }
}

impl<'z> Future for Joining<'z> {
    type Output = Result<Turn<'z>, Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = loop {
            if self.is_answered {
                return Poll::Pending;
            }
            match ready!(Pin::new(&mut self.answer).poll(cx)) {
                Ok(Answer::OneTooMany(limit)) => self.answer = self.join_flood(limit),
                answer => break answer,
            }
        };
        self.is_answered = true;
        let mut rejection = match answer {
            Ok(Answer::Turn(grant)) => return Poll::Ready(Ok(self.turn(grant))),
            Ok(Answer::Rejected(rejection)) => rejection,
            // A request of an earlier file came so late that nothing is left of the zone.
            Err(_) if self.shards.has_ended(&self.bucket_key()) => {
                return Poll::Ready(Ok(self.turn(Grant::unlimited())));
            }
            // The key's actor or the supervisor has panicked. In a stop everybody is answered.
            Ok(Answer::OneTooMany(_) | Answer::NoPlace) | Err(_) => Rejection {
                reason: Rejected::Restart,
                excess: Excess::default(),
                retry_after: RETRY_SOON,
                is_flood: false,
            },
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
        // Close first: the actor can then answer no more, so exactly one of these cases applies.
        self.answer.close();
        match self.answer.try_recv() {
            Ok(Answer::Turn(grant)) => give_back(self.shards, &self.bucket_key(), &grant),
            Ok(Answer::Rejected(_) | Answer::OneTooMany(_) | Answer::NoPlace) => {}
            Err(_) => {
                let (key, ticket) = (self.bucket_key(), self.ticket);
                self.shards.send(&Key::clone(&key), Leave { key, ticket });
            }
        }
        self.shards.count_unused(self.plan, self.unused);
    }
}
