use std::num::NonZeroU32;
use std::time::Duration;

use super::MAX_SESSIONS;
use crate::{Moment, Rate};

/// What bounds a waiting room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoomLimits {
    /// Visitors inside at once; `None`: not bounded.
    pub sessions: Option<NonZeroU32>,
    /// New visitors let in; [`Rate::UNLIMITED`]: as fast as places come free.
    pub admit: Rate,
    /// A visitor who asks nothing for so long has left.
    pub idle: Duration,
    /// A called visitor who does not come within this loses the turn.
    pub claim: Duration,
    /// Before it everybody waits.
    pub opens: Option<Moment>,
    /// Whether nobody is called for now.
    pub is_paused: bool,
}

impl RoomLimits {
    /// Most visitors inside at once.
    pub fn places(&self) -> u64 {
        self.sessions.map_or(MAX_SESSIONS, NonZeroU32::get).into()
    }

    /// The time between two calls; zero if only places bound them.
    pub fn interval(&self) -> Duration {
        if self.admit.is_unlimited() {
            return Duration::ZERO;
        }
        let nanos = self.admit.ticks_per_request() / self.admit.ticks_per_nano();
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Visitors a second that are let in at most, as far as the limits alone tell.
    ///
    /// With places alone, this assumes that each visitor stays as long as one who asks only once.
    pub(super) fn expected_pace(&self) -> f64 {
        let admit = self.admit.per_second();
        let idle = self.idle.as_secs_f64().max(1.0);
        let by_places = self.sessions.map(|it| f64::from(it.get()) / idle);
        admit.min(by_places.unwrap_or(f64::INFINITY))
    }
}
