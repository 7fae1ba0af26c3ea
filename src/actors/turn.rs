use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::oneshot;

use super::messages::{Answer, Grant, Join, Key, Leave, Probe, Refund, Rejection};
use super::zone::Zone;
use crate::limit::{Excess, Limit, Ticket};
use crate::metrics::{LimitStatus, Rejected};

/// A request on its way to its turn in one zone. Dropped before it is answered, it leaves the queue; dropped with an
/// answer under way, it gives the turn back.
#[derive(Debug)]
pub struct Joining<'z> {
    zone: &'z Zone,
    key: Key,
    ticket: Ticket,
    dry_run: bool,
    /// `None` once it was answered.
    answer: Option<oneshot::Receiver<Answer>>,
}

impl<'z> Joining<'z> {
    pub(super) fn new(zone: &'z Zone, key: Key, limit: Limit, dry_run: bool) -> Self {
        let (reply, answer) = oneshot::channel();
        let ticket = next_ticket();
        zone.send(
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
            zone,
            key,
            ticket,
            dry_run,
            answer: Some(answer),
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
            Ok(Answer::Turn(grant)) => {
                return Poll::Ready(Ok(Turn {
                    zone: self.zone,
                    key: Key::clone(&self.key),
                    grant,
                    dry_run: self.dry_run,
                    used: false,
                }));
            }
            Ok(Answer::Rejected(rejection)) => rejection,
            // The supervisor has ended, as in a stop, or the key's actor was lost.
            Err(_) => {
                let reason = Rejected::Stopping;
                Rejection {
                    reason,
                    excess: Excess::default(),
                    retry_after: Duration::from_secs(1),
                }
            }
        };
        self.zone.count_rejection(&rejection, self.dry_run);
        Poll::Ready(Err(rejection))
    }
}

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        let Some(mut answer) = self.answer.take() else {
            return;
        };
        // Closed first: from here on the actor cannot answer any more, so exactly one of these is true.
        answer.close();
        match answer.try_recv() {
            Ok(Answer::Turn(grant)) => self.zone.send(&self.key, refund(&self.key, &grant)),
            Ok(Answer::Rejected(_)) => {}
            Err(_) => self.zone.send(
                &self.key,
                Leave {
                    key: Key::clone(&self.key),
                    ticket: self.ticket,
                },
            ),
        }
        self.zone.metrics().count(LimitStatus::Cancelled);
    }
}

/// The question whether a zone would accept a request now; nothing is charged.
///
/// A request that asks several zones asks this first: what one of them would reject is then charged by none, not even
/// for the moment until a turn is given back, in which others would be turned away.
#[derive(Debug)]
pub struct Probing(oneshot::Receiver<Option<Rejection>>);

impl Probing {
    pub(super) fn new(zone: &Zone, key: Key, limit: Limit) -> Self {
        let (reply, answer) = oneshot::channel();
        zone.send(&Key::clone(&key), Probe { key, limit, reply });
        Self(answer)
    }
}

impl Future for Probing {
    /// Why not, if not.
    type Output = Option<Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A supervisor that has ended is met again, and counted, by the join.
        Pin::new(&mut self.0)
            .poll(cx)
            .map(Result::unwrap_or_default)
    }
}

/// The right to go on, as one zone gave it. Dropped unused, it gives back what it was charged.
#[derive(Debug)]
pub struct Turn<'z> {
    zone: &'z Zone,
    key: Key,
    grant: Grant,
    dry_run: bool,
    used: bool,
}

impl Turn<'_> {
    /// Goes on: the charge stays. Returns what the actor knew when it gave the turn.
    #[must_use]
    pub fn take(mut self) -> Grant {
        self.used = true;
        self.zone.metrics().count(self.grant.status(self.dry_run));
        self.grant
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.used {
            self.zone.send(&self.key, refund(&self.key, &self.grant));
            self.zone.metrics().count(LimitStatus::Cancelled);
        }
    }
}

fn refund(key: &Key, grant: &Grant) -> Refund {
    Refund {
        key: Key::clone(key),
        charge: grant.charge,
    }
}

/// A ticket that no other join of this process has: each thread counts up from a start of its own.
fn next_ticket() -> Ticket {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) << 48);
    }
    Ticket(NEXT.replace(NEXT.get() + 1))
}
