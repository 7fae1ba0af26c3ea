//! How requests ask a zone, and how those are counted that do not.

use tokio::sync::oneshot;

use super::Zone;
use crate::observe::metrics::LimitStatus;
use crate::zone::answer::{Answer, Rejection};
use crate::zone::join::{Join, Key};
use crate::zone::joining::{Joined, Joining};

impl Zone {
    /// Asks for a turn. It may be decided at once.
    pub fn ask(&self, join: Join) -> Joined<'_> {
        Joined::new(&self.shards, self.plan(join.plan), join)
    }

    /// Asks for a turn, and waits for the answer.
    pub fn join(&self, join: Join) -> Joining<'_> {
        Joining::new(&self.shards, self.plan(join.plan), join)
    }

    /// Returns why a join would be rejected now, if it would. Nothing is charged.
    ///
    /// A request that needs several zones asks all of them this first. So a request that one zone
    /// would reject is charged by none, not even until its turns are given back: meanwhile other
    /// requests would be rejected.
    pub async fn probe(&self, mut join: Join) -> Option<Rejection> {
        let mut is_flood = false;
        loop {
            let (reply, answer) = oneshot::channel();
            let key = Key::clone(&join.key);
            self.shards
                .send(&key, move |zone, _| zone.probe(join, reply));
            match answer.await {
                Ok(Some(Answer::OneTooMany(unknown))) => {
                    is_flood = true;
                    join = unknown.of_new_keys();
                }
                Ok(Some(Answer::Rejected(rejection))) => {
                    return Some(Rejection {
                        is_flood,
                        ..rejection
                    });
                }
                // If the supervisor has ended, the join finds out and counts it.
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// Counts a request that never joined, because this zone would have rejected it.
    pub fn count_rejection(&self, join: &Join, rejection: &Rejection) {
        if rejection.is_flood {
            self.metrics().flooded.add(1);
        }
        self.shards
            .count_rejection(self.plan(join.plan), rejection, join.dry_run);
    }

    /// Counts a request that this zone would have accepted but another zone rejected.
    pub fn count_rejected_elsewhere(&self, join: &Join) {
        let status = LimitStatus::RejectedElsewhere;
        self.metrics().count(self.plan(join.plan), status);
    }
}
