use std::num::NonZeroU16;

use super::{Cost, Moment};

/// Where requests go on to once they have their turns. Its number is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Onward(pub NonZeroU16);

/// A request that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToCome {
    /// When its turn comes.
    pub due: Moment,
    /// What it counts for.
    pub cost: Cost,
}
