use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use super::answer::{Answer, Charge, Grant, Key, NEW_KEYS, Outcome, RETRY_SOON, Rejection};
use super::messages::{FreePlace, Join, Leave, Probe, Refund, Settle};
use super::shards::Shards;
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
    key: Key,
    /// Those of the plan of the key, if it has one.
    plan: Option<&'z PlanMetrics>,
    request: RequestTicket,
    dry_run: bool,
    /// What it counts as if its turn is not used.
    unused: Unused,
    /// `None` once the answer is here.
    answer: Option<oneshot::Receiver<Answer>>,
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
        let answer = ask(shards, &key, limit, dry_run, request);
        Self {
            shards,
            key,
            plan,
            request,
            dry_run,
            unused: Unused::Cancelled,
            answer: Some(answer),
        }
    }
}

/// Sends a join to the supervisor of `key`.
fn ask(
    shards: &Shards,
    key: &Key,
    limit: Limit,
    dry_run: bool,
    request: RequestTicket,
) -> oneshot::Receiver<Answer> {
    let (reply, answer) = oneshot::channel();
    let RequestTicket { ticket, onward } = request;
    shards.send(
        key,
        Join {
            key: Key::clone(key),
            limit,
            dry_run,
            ticket,
            onward,
            reply,
        },
    );
    answer
}

impl<'z> Joining<'z> {
    /// Joins the bucket that unknown keys share, instead of that of the request's own key.
    fn join_flood(&mut self, limit: Limit) -> oneshot::Receiver<Answer> {
        self.key = Key::from(NEW_KEYS);
        self.shards.metrics().flooded.add(1);
        ask(self.shards, &self.key, limit, self.dry_run, self.request)
    }

    /// Leaves the queue, because another zone rejected the request.
    pub fn reject_elsewhere(mut self) {
        self.unused = Unused::RejectedElsewhere;
    }

    fn turn(&self, grant: Grant) -> Turn<'z> {
        Turn {
            shards: self.shards,
            key: Key::clone(&self.key),
            plan: self.plan,
            grant,
            dry_run: self.dry_run,
            unused: Some(Unused::Cancelled),
        }
    }
}

impl<'z> Future for Joining<'z> {
    type Output = Result<Turn<'z>, Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = loop {
            let Some(answer) = &mut self.answer else {
                return Poll::Pending;
            };
            match ready!(Pin::new(answer).poll(cx)) {
                Ok(Answer::OneTooMany(limit)) => self.answer = Some(self.join_flood(limit)),
                answer => break answer,
            }
        };
        self.answer = None;
        let mut rejection = match answer {
            Ok(Answer::Turn(grant)) => return Poll::Ready(Ok(self.turn(grant))),
            Ok(Answer::Rejected(rejection)) => rejection,
            // A request of an earlier file came so late that nothing is left of the zone.
            Err(_) if self.shards.has_ended(&self.key) => {
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
        rejection.is_flood = *self.key == *NEW_KEYS;
        self.shards
            .count_rejection(self.plan, &rejection, self.dry_run);
        Poll::Ready(Err(rejection))
    }
}

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        let Some(mut answer) = self.answer.take() else {
            return;
        };
        // Close first: the actor can then answer no more, so exactly one of these cases applies.
        answer.close();
        match answer.try_recv() {
            Ok(Answer::Turn(grant)) => give_back(self.shards, &self.key, &grant),
            Ok(Answer::Rejected(_) | Answer::OneTooMany(_)) => {}
            Err(_) => self.shards.send(
                &self.key,
                Leave {
                    key: Key::clone(&self.key),
                    ticket: self.request.ticket,
                },
            ),
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
    key: Key,
    plan: Option<&'z PlanMetrics>,
    grant: Grant,
    dry_run: bool,
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
        *self.key == *NEW_KEYS
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
            key: Key::clone(&self.key),
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
            key: Key::clone(&self.key),
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
            give_back(self.shards, &self.key, &self.grant);
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

/// Gives an unused turn back.
fn give_back(shards: &Shards, key: &Key, grant: &Grant) {
    let charge = grant.charge;
    let refund = Refund {
        key: Key::clone(key),
        charge,
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
