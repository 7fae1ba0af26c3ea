//! Joins and probes of a zone, and the counting of requests that never joined.

use tokio::sync::oneshot;

use super::Zone;
use crate::observe::metrics::LimitStatus;
use crate::zone::answer::{Answer, Rejection};
use crate::zone::join::{Join, Key};
use crate::zone::joining::{Joined, Joining};

impl Zone {
    /// Joins the zone. Returns the admission or rejection, or the wait for one.
    pub fn join_at_once(&self, join: Join) -> Joined<'_> {
        Joined::new(&self.shards, self.plan(join.plan), join)
    }

    /// Joins the zone. Returns a future of the answer, even if the answer is there already.
    pub fn join(&self, join: Join) -> Joining<'_> {
        let answer = self.shards.join(&join);
        Joining::new(answer, &self.shards, self.plan(join.plan), join)
    }

    /// Returns why a join would be rejected now; `None` if it would be accepted. Charges nothing.
    ///
    /// A request that needs several zones first probes all of them. If one zone would reject it, no
    /// zone is charged, not even until the charge is refunded: such a short-lived charge could
    /// cause the rejection of other requests.
    pub async fn probe(&self, mut join: Join) -> Option<Rejection> {
        let mut is_flood = false;
        loop {
            let (reply, answer) = oneshot::channel();
            let (shards, key) = (&self.shards, Key::clone(&join.key));
            shards.send(&key, move |zone, _| zone.probe(join, reply));
            match answer.await {
                Ok(Some(Answer::UseNewKeysBucket(unknown))) => {
                    is_flood = true;
                    join = unknown.of_new_keys();
                }
                Ok(Some(Answer::Rejected(mut rejection))) => {
                    rejection.is_flood = is_flood;
                    return Some(rejection);
                }
                // If the supervisor has ended, the join finds out and counts the request.
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// Counts a request that did not join because this zone would have rejected it.
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
