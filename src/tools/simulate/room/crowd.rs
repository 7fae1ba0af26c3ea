//! Visitors who come to a room, and what they do.

use std::time::Duration;

use crate::limit::Moment;
use crate::tools::random::Random;

/// Visitors before a waiting room.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisitorCrowd {
    pub(super) visitors: u64,
    /// The time in which they come, at random.
    pub(super) within: Duration,
    /// The mean time from the first to the last request inside. Times are exponentially
    /// distributed.
    pub(super) stay: Duration,
    /// The share of those who wait that never comes back, from 0 to 1.
    pub(super) leave: f64,
    /// How long before the opening the first ones come; `None`: the room is open.
    pub(super) early: Option<Duration>,
}

impl VisitorCrowd {
    /// When the first visitor may come.
    pub(super) const BEGIN: Moment = Moment::from_nanos(1_000_000_000_000_000);

    /// When the room opens, if that is not before the visitors come.
    pub(super) fn opens(&self) -> Option<Moment> {
        self.early.map(|early| Self::BEGIN + early)
    }

    /// When visitors come, the first one first.
    pub(super) fn arrivals(&self, random: &mut Random) -> Vec<Moment> {
        let arrival = |_| Self::BEGIN + self.within.mul_f64(random.share());
        let mut arrivals: Vec<_> = (0..self.visitors).map(arrival).collect();
        arrivals.sort_unstable();
        arrivals
    }

    /// How long a visitor is inside.
    pub(super) fn stay(&self, random: &mut Random) -> Duration {
        self.stay.mul_f64(-random.share().max(1e-9).ln())
    }
}
