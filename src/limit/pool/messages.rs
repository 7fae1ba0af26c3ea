//! Messages between a gateway and a pool of permits, and between the gateway and its gate.
//!
//! A *permit* is the right to run one request at the origin. A *pool* *leases* permits to several
//! gateways, its *members*. A *slot* is an instant at which one request may leave for the origin.

use std::num::NonZeroU32;

use crate::Moment;

/// Permits that a gateway needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermitNeeds {
    /// Number of permits in use.
    pub in_use: usize,
    /// Number of additional permits that could be used at once, by waiters that lack nothing else.
    pub waiting: usize,
    /// Upper bound of the permits by the gateway's other limits.
    pub max_permits: usize,
    /// Effective maximum of all gateways together; `None`: no limit.
    pub maximum: Option<usize>,
    /// Weight of this gateway against other gateways.
    pub weight: u64,
    /// First slot that was granted for waiters; with `is_slot_first`, only if it is near.
    pub slot: Option<Moment>,
    /// Whether permits rotate between gateways, and one is needed only for a slot that is near.
    pub is_slot_first: bool,
    /// Instant at which these needs change without an event, so that the caller must look again.
    pub looks: Option<Moment>,
}

impl PermitNeeds {
    /// Returns the number of permits that could be used at once, including those in use.
    pub(super) fn usable(&self) -> usize {
        let max_permits = self.max_permits.max(self.in_use);
        self.in_use.saturating_add(self.waiting).min(max_permits)
    }
}

/// Permits of a pool that a gateway has, for its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeasedPermits {
    /// Number of permits: so many requests may be at the origin at once.
    pub permits: usize,
    /// Instant at which the only permit goes back, because other gateways wait for it; `None`: no
    /// turn ends.
    pub until: Option<Moment>,
    /// Number of gateways between which the permits rotate; `None`: there is a permit for each.
    pub among: Option<NonZeroU32>,
}

/// Call: the report of a gateway to the pool.
///
/// It contains totals and no changes, so a repeated call does no harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCall {
    /// Number that increases with each call.
    pub number: u64,
    /// Number of permits that it holds, without those that it gives back with this call.
    pub held: usize,
    /// Number of permits in use.
    pub in_use: usize,
    /// Maximum of all gateways together, if backoff has lowered it; `None`: not lowered.
    pub lowered_maximum: Option<usize>,
    /// Number of permits that it could use now.
    pub usable: usize,
    /// Number of permits that it requests to hold.
    ///
    /// It may be above `usable`, so that the next request need not wait for a call.
    pub requested: usize,
    /// Weight of this gateway against other gateways.
    pub weight: u64,
    /// Members of the pool, as of the last reply.
    pub members: KnownMembers,
    /// Whether the gateway leaves the pool.
    pub leaves: bool,
}

/// Members of a pool, as a gateway knows them from the last reply.
///
/// A pool that has lost its last writes detects by this whether a member is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownMembers {
    /// Number of registrations of members so far.
    pub registrations: u64,
    /// Number of members with permits, as of the reply.
    pub members: u64,
}

/// Reply of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolReply {
    /// Number of permits that are leased to this gateway from now on.
    pub leased: usize,
    /// Number of permits that it may keep: other gateways request the rest.
    ///
    /// Above zero with `leased` zero: the gateway gets the next free permit.
    pub keeps: usize,
    /// Whether other gateways wait for permits.
    pub others_wait: bool,
    /// Whether few permits are free.
    pub is_scarce: bool,
    /// State of the pool.
    pub counts: PoolCounts,
    /// Members of the pool.
    pub members: KnownMembers,
}

/// State of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Effective maximum: the configured one, or the one lowered by backoff plus withheld permits.
    pub of: usize,
    /// Number of gateways whose lease has not ended.
    pub gateways: u32,
    /// Number of permits that these gateways hold.
    pub held: usize,
    /// Number of permits that these gateways use, as last reported.
    pub in_use: usize,
    /// Number of *withheld* permits: vanished gateways may still use them.
    pub withheld: usize,
    /// Whether the pool is new or has lost its state, and collects the reports of its gateways.
    ///
    /// Meanwhile it leases nothing, and every permit that is not reported counts as withheld.
    pub is_recovering: bool,
    /// Number of permits that are not leased.
    pub free: usize,
}

impl PoolCounts {
    /// Returns the number of permits withheld for vanished gateways, and of permits whose holders
    /// are unknown.
    pub fn withheld_and_unknown(&self) -> (usize, usize) {
        if self.is_recovering {
            (0, self.withheld)
        } else {
            (self.withheld, 0)
        }
    }
}
