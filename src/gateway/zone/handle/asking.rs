//! How requests ask a zone, and how those are counted that do not.

use limit::Limit;

use super::Zone;
use crate::zone::answer::{Key, Rejection};
use crate::zone::joining::{Joined, Joining};
use crate::zone::probing::Probing;
use crate::zone::ticket::RequestTicket;
use crate::zone::unused::Unused;

impl Zone {
    /// Asks for a turn for `key`, whose plan has the index `plan`.
    #[must_use]
    pub fn join(&self, key: Key, plan: Option<usize>, limit: Limit, dry_run: bool) -> Joining<'_> {
        self.join_as(RequestTicket::new(None), key, plan, limit, dry_run)
    }

    /// As [`Zone::join`], for a request that joins other zones too or goes on to a gate.
    #[must_use]
    pub fn join_as(
        &self,
        request: RequestTicket,
        key: Key,
        plan: Option<usize>,
        limit: Limit,
        dry_run: bool,
    ) -> Joining<'_> {
        Joining::new(&self.shards, key, self.plan(plan), limit, dry_run, request)
    }

    /// As [`Zone::join_as`], for a request that joins no other zone: it may be decided at once.
    #[must_use]
    pub fn ask(
        &self,
        request: RequestTicket,
        key: Key,
        plan: Option<usize>,
        limit: Limit,
        dry_run: bool,
    ) -> Joined<'_> {
        Joined::ask(&self.shards, key, self.plan(plan), limit, dry_run, request)
    }

    /// Asks whether a join would be accepted now.
    #[must_use]
    pub fn probe(&self, key: &Key, limit: Limit, dry_run: bool) -> Probing<'_> {
        Probing::new(&self.shards, key, limit, dry_run)
    }

    /// Counts a request that this zone rejected. The plan of its key has the index `plan`.
    ///
    /// For a request that never joined: a probe said that it would be rejected.
    pub fn count_rejection(&self, plan: Option<usize>, rejection: &Rejection, dry_run: bool) {
        if rejection.is_flood {
            self.metrics().flooded.add(1);
        }
        self.shards
            .count_rejection(self.plan(plan), rejection, dry_run);
    }

    /// Counts a request that this zone would have accepted but another zone rejected.
    pub fn count_rejected_elsewhere(&self, plan: Option<usize>) {
        let why = Unused::RejectedElsewhere;
        self.shards.count_unused(self.plan(plan), why);
    }
}
