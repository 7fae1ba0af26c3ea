use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use super::answer::{Answer, Charge, Grant, Key, NEW_KEYS, Outcome, RETRY_SOON, Rejection};
use super::messages::{FreePlace, Leave, Probe, Refund, Settle};
use super::shards::Shards;
use super::supervisor::JoinRequest;
use super::unused::Unused;
use crate::limit::{Cost, Excess, Limit, Onward, Ticket};
use crate::observe::metrics::{PlanMetrics, Rejected};

/// What tells a request from others, in all the zones that it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTicket {
    ticket: Ticket,
    onward: Option<Onward>,
}

impl RequestTicket {
    /// That of a new request. `onward`: where it goes on to, if what is to come matters there.
    #[must_use]
    pub fn new(onward: Option<Onward>) -> Self {
        Self {
            ticket: next_ticket(),
            onward,
        }
    }
}

/// A request that waits for its turn in one zone.
///
/// If it is dropped before it is answered, it leaves the queue. If it is dropped while an answer
/// is on its way, the turn is given back.
#[derive(Debug)]
pub struct Joining<'z> {
    shards: &'z Shards,
    /// The request's own key; `None` once its turn has it.
    key: Option<Key>,
    /// Those of the plan of the key, if it has one.
    plan: Option<&'z PlanMetrics>,
    ticket: Ticket,
    onward: Option<Onward>,
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
        RequestTicket { ticket, onward }: RequestTicket,
    ) -> Self {
        Self {
            shards,
            key: Some(key),
            plan,
            ticket,
            onward,
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
            Ok(Answer::Turn(grant)) => Self::Turn(Turn {
                shards,
                key,
                plan,
                grant,
                dry_run,
                is_flood: false,
                unused: Some(Unused::Cancelled),
            }),
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
    RequestTicket { ticket, onward }: RequestTicket,
) -> Result<Answer, oneshot::Receiver<Answer>> {
    shards.ask(&JoinRequest {
        key,
        limit,
        dry_run,
        ticket,
        onward,
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
        let (ticket, onward) = (self.ticket, self.onward);
        let request = RequestTicket { ticket, onward };
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
        Turn {
            shards: self.shards,
            key: self.take_key(),
            plan: self.plan,
            grant,
            dry_run: self.dry_run,
            is_flood: self.is_flood,
            unused: Some(Unused::Cancelled),
        }
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
            Ok(Answer::OneTooMany(_)) | Err(_) => Rejection {
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
            Ok(Answer::Rejected(_) | Answer::OneTooMany(_)) => {}
            Err(_) => {
                let (key, ticket) = (self.bucket_key(), self.ticket);
                self.shards.send(&Key::clone(&key), Leave { key, ticket });
            }
        }
        self.shards.count_unused(self.plan, self.unused);
    }
}

/// Asks whether a zone would accept a request now. Nothing is charged.
///
/// A request that needs several zones asks all of them this first. So a request that one zone
/// would reject is charged by none, not even until its turns are given back: meanwhile other
/// requests would be rejected.
#[derive(Debug)]
pub struct Probing<'z> {
    shards: &'z Shards,
    dry_run: bool,
    /// Whether the bucket that unknown keys share is asked.
    is_flood: bool,
    answer: oneshot::Receiver<Outcome>,
}

impl<'z> Probing<'z> {
    pub(super) fn new(shards: &'z Shards, key: &Key, limit: Limit, dry_run: bool) -> Self {
        Self {
            shards,
            dry_run,
            is_flood: false,
            answer: probe(shards, key, limit, dry_run),
        }
    }
}

/// Sends a probe to the supervisor of `key`.
fn probe(shards: &Shards, key: &Key, limit: Limit, dry_run: bool) -> oneshot::Receiver<Outcome> {
    let (reply, answer) = oneshot::channel();
    let probe = Probe {
        key: Key::clone(key),
        limit,
        dry_run,
        reply,
    };
    shards.send(key, probe);
    answer
}

impl Future for Probing<'_> {
    /// The rejection, or `None` if the request would be accepted.
    type Output = Option<Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match ready!(Pin::new(&mut self.answer).poll(cx)) {
                Ok(Outcome::OneTooMany(limit)) => {
                    self.is_flood = true;
                    self.answer = probe(self.shards, &Key::from(NEW_KEYS), limit, self.dry_run);
                }
                Ok(Outcome::Rejected(mut rejection)) => {
                    rejection.is_flood = self.is_flood;
                    return Poll::Ready(Some(rejection));
                }
                // If the supervisor has ended, the join finds out and counts it.
                Ok(Outcome::Accepted) | Err(_) => return Poll::Ready(None),
            }
        }
    }
}

/// The right to go on, granted by one zone. An unused turn gives its charge back when dropped.
#[derive(Debug)]
pub struct Turn<'z> {
    shards: &'z Shards,
    /// The request's own key.
    key: Key,
    plan: Option<&'z PlanMetrics>,
    grant: Grant,
    dry_run: bool,
    is_flood: bool,
    /// What it counts as when it is dropped; `None` once it is used.
    unused: Option<Unused>,
}

impl<'z> Turn<'z> {
    /// What the actor knew when it granted the turn.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Whether the bucket that unknown keys share granted it, and not that of the request's key.
    #[must_use]
    pub fn is_flood(&self) -> bool {
        self.is_flood
    }

    /// The request's own key.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the key of the bucket that granted it.
    fn bucket_key(&self) -> Key {
        bucket_key(Some(&self.key), self.is_flood)
    }

    /// Uses the turn: the charge stays.
    ///
    /// Returns the place of the request among the running ones of its key, if it has one.
    #[allow(
        clippy::must_use_candidate,
        reason = "a place that nobody holds is free again"
    )]
    pub fn take(mut self) -> Option<HeldPlace<'z>> {
        self.use_up();
        self.grant.place.map(|ticket| HeldPlace {
            shards: self.shards,
            key: self.bucket_key(),
            ticket,
        })
    }

    /// Gives the turn back, because another zone or the origin's gate rejected the request.
    pub fn reject_elsewhere(mut self) {
        self.unused = Some(Unused::RejectedElsewhere);
    }

    /// What this turn was charged, to be changed once the turn was used.
    #[must_use]
    pub fn used(&self) -> UsedTurn<'z> {
        UsedTurn {
            shards: self.shards,
            key: self.bucket_key(),
            charge: self.grant.charge,
        }
    }

    fn use_up(&mut self) {
        self.unused = None;
        let status = self.grant.status(self.dry_run);
        self.shards.metrics().count(self.plan, status);
    }
}

/// A turn that was used. What it was charged can still be changed.
#[derive(Debug)]
pub struct UsedTurn<'z> {
    shards: &'z Shards,
    key: Key,
    charge: Charge,
}

impl UsedTurn<'_> {
    /// Gives the charge back: the waiters behind it move up.
    pub fn refund(self) {
        let (key, charge) = (Key::clone(&self.key), self.charge);
        self.shards.send(&self.key, Refund { key, charge });
    }

    /// Changes what was charged to this cost.
    pub fn settle(self, cost: Cost) {
        let (key, charge) = (Key::clone(&self.key), self.charge);
        self.shards.send(&self.key, Settle { key, charge, cost });
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(why) = self.unused {
            give_back(self.shards, &self.bucket_key(), &self.grant);
            self.shards.count_unused(self.plan, why);
        }
    }
}

/// A request's place among the running ones of its key, until this is dropped.
#[derive(Debug)]
pub struct HeldPlace<'z> {
    shards: &'z Shards,
    key: Key,
    ticket: Ticket,
}

impl Drop for HeldPlace<'_> {
    fn drop(&mut self) {
        free(self.shards, &self.key, self.ticket);
    }
}

/// Returns the key of the bucket of a request: its own, or the one that unknown keys share.
fn bucket_key(own: Option<&Key>, is_flood: bool) -> Key {
    let own = own.filter(|_| !is_flood);
    own.map_or_else(|| Key::from(NEW_KEYS), Key::clone)
}

/// Gives an unused turn back.
fn give_back(shards: &Shards, key: &Key, grant: &Grant) {
    let refund = Refund {
        key: Key::clone(key),
        charge: grant.charge,
    };
    shards.send(key, refund);
    if let Some(ticket) = grant.place {
        free(shards, key, ticket);
    }
}

fn free(shards: &Shards, key: &Key, ticket: Ticket) {
    let key = Key::clone(key);
    shards.send(&Key::clone(&key), FreePlace { key, ticket });
}

/// Returns a ticket that is unique in this process: each thread counts up from its own start.
fn next_ticket() -> Ticket {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) << 48);
    }
    Ticket(NEXT.replace(NEXT.get() + 1))
}
