//! What a gateway and a pool of places tell each other.

use std::num::NonZeroU32;

use crate::Moment;

/// What a gateway has to do with places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceNeeds {
    /// Places in use.
    pub in_use: usize,
    /// More that could be used at once: what waits for nothing else.
    pub waiting: usize,
    /// Most that it may use by its other limits.
    pub most: usize,
    /// Most that all gateways together may use now, by what back-off has learned; `None`: all.
    pub of_all: Option<usize>,
    /// What counts of it against other gateways.
    pub weight: u64,
    /// The slot in time in which the next place is used, if one is needed for it or soon.
    pub slot: Option<Moment>,
    /// Whether places go round, and one is needed only for a slot in time that is near.
    pub is_slot_first: bool,
    /// When this changes by itself.
    pub looks: Option<Moment>,
}

impl PlaceNeeds {
    /// Places that could be used at once, with those in use.
    pub(super) fn usable(&self) -> usize {
        let most = self.most.max(self.in_use);
        self.in_use.saturating_add(self.waiting).min(most)
    }
}

/// The places of a pool that a gateway has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LentPlaces {
    /// Requests that may be at the origin at once.
    pub places: usize,
    /// When the last of them goes back, if others wait for it; `None`: not known.
    pub until: Option<Moment>,
    /// Among how many gateways they go round; `None`: there is a place for each.
    pub among: Option<NonZeroU32>,
}

/// What a gateway tells the pool. It names no change, so a repeated call changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCall {
    /// Only goes up.
    pub number: u64,
    /// Places that it holds, after those that it gives back.
    pub held: usize,
    /// How many of them are in use.
    pub in_use: usize,
    /// Most that all gateways together may use now, by what back-off has learned; `None`: all.
    pub of_all: Option<usize>,
    /// Places that it could use now.
    pub usable: usize,
    /// Places that it would like to hold, so that the next request need not ask.
    pub wish: usize,
    /// What counts of it against others.
    pub weight: u64,
    /// What it was told of members.
    pub members: KnownMembers,
    /// Whether it leaves.
    pub leaves: bool,
}

/// What a gateway was last told of who borrows from a pool.
///
/// A pool that has lost its last writes finds out by this whether somebody is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownMembers {
    /// How many have registered so far.
    pub registrations: u64,
    /// How many had something then.
    pub members: u64,
}

/// What the pool answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolReply {
    /// Places that are lent to this gateway from now on.
    pub lent: usize,
    /// How many of them it may keep, as others want the rest.
    pub keeps: usize,
    /// Whether others wait for places.
    pub others_wait: bool,
    /// Whether few places are free.
    pub is_scarce: bool,
    /// The state of the pool.
    pub counts: PoolCounts,
    /// Who is there.
    pub members: KnownMembers,
}

/// The state of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// The maximum in force: that of the file, or what back-off has left of it and what is withheld.
    pub of: usize,
    /// Gateways whose lease has not ended.
    pub gateways: u32,
    /// Places that they hold.
    pub held: usize,
    /// Places that they use, as they told last.
    pub in_use: usize,
    /// Places that gateways which vanished may still use.
    pub withheld: usize,
    /// Whether the pool, which is new or has lost its state, finds out who holds what. It lends nothing
    /// meanwhile, and all that nobody has told of counts as withheld.
    pub is_recovering: bool,
    /// Places that are lent to nobody.
    pub free: usize,
}

impl PoolCounts {
    /// Places that gateways which vanished may still use, and those of which the pool finds out who
    /// has them.
    pub fn withheld_and_unknown(&self) -> (usize, usize) {
        if self.is_recovering {
            (0, self.withheld)
        } else {
            (self.withheld, 0)
        }
    }
}
