use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use super::answer::{Answer, Charge, Grant, Key, RETRY_SOON, Rejection};
use super::messages::{FreePlace, Join, Leave, Probe, Refund, Settle};
use super::shards::Shards;
use crate::limit::{Cost, Excess, Limit, Ticket};
use crate::observe::metrics::{PlanMetrics, Rejected};

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
    ticket: Ticket,
    dry_run: bool,
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
    ) -> Self {
        let (reply, answer) = oneshot::channel();
        let ticket = next_ticket();
        shards.send(
            &key,
            Join {
                key: Key::clone(&key),
                limit,
                dry_run,
                ticket,
                reply,
            },
        );
        Self {
            shards,
            key,
            plan,
            ticket,
            dry_run,
            answer: Some(answer),
        }
    }
}

impl<'z> Joining<'z> {
    fn turn(&self, grant: Grant) -> Turn<'z> {
        Turn {
            shards: self.shards,
            key: Key::clone(&self.key),
            plan: self.plan,
            grant,
            dry_run: self.dry_run,
            used: false,
        }
    }
}

impl<'z> Future for Joining<'z> {
    type Output = Result<Turn<'z>, Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(answer) = &mut self.answer else {
            return Poll::Pending;
        };
        let answer = ready!(Pin::new(answer).poll(cx));
        self.answer = None;
        let rejection = match answer {
            Ok(Answer::Turn(grant)) => return Poll::Ready(Ok(self.turn(grant))),
            Ok(Answer::Rejected(rejection)) => rejection,
            // A request of an earlier file came so late that nothing is left of the zone.
            Err(_) if self.shards.has_ended(&self.key) => {
                return Poll::Ready(Ok(self.turn(Grant::unlimited())));
            }
            // The key's actor or the supervisor has panicked. In a stop everybody is answered.
            Err(_) => Rejection {
                reason: Rejected::Restart,
                excess: Excess::default(),
                retry_after: RETRY_SOON,
            },
        };
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
            Ok(Answer::Rejected(_)) => {}
            Err(_) => self.shards.send(
                &self.key,
                Leave {
                    key: Key::clone(&self.key),
                    ticket: self.ticket,
                },
            ),
        }
        self.shards.count_cancelled(self.plan);
    }
}

/// Asks whether a zone would accept a request now. Nothing is charged.
///
/// A request that needs several zones asks all of them this first. So a request that one zone
/// would reject is charged by none, not even until its turns are given back: meanwhile other
/// requests would be rejected.
#[derive(Debug)]
pub struct Probing(oneshot::Receiver<Option<Rejection>>);

impl Probing {
    pub(super) fn new(shards: &Shards, key: &Key, limit: Limit, dry_run: bool) -> Self {
        let (reply, answer) = oneshot::channel();
        let probe = Probe {
            key: Key::clone(key),
            limit,
            dry_run,
            reply,
        };
        shards.send(key, probe);
        Self(answer)
    }
}

impl Future for Probing {
    /// The rejection, or `None` if the request would be accepted.
    type Output = Option<Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // If the supervisor has ended, the join finds out and counts it.
        Pin::new(&mut self.0)
            .poll(cx)
            .map(Result::unwrap_or_default)
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
    used: bool,
}

impl<'z> Turn<'z> {
    /// What the actor knew when it granted the turn.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
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
        self.used = true;
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
        if !self.used {
            give_back(self.shards, &self.key, &self.grant);
            self.shards.count_cancelled(self.plan);
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
