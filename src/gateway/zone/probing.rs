use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use limit::Limit;
use tokio::sync::oneshot;

use super::answer::{Key, NEW_KEYS, Outcome, Rejection};
use super::messages::Probe;
use super::shards::Shards;

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
