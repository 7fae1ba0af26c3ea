//! Limits of a waiting room.
//!
//! A visitor *inside* has a *session*. The room *calls* waiting visitors: a call reserves a session
//! until the visitor arrives.

use std::num::NonZeroU32;
use std::time::Duration;

use super::MAX_SESSIONS;
use crate::{Moment, Rate};

/// Limits of a waiting room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoomLimits {
    /// Maximum of visitors inside; `None`: no bound.
    pub sessions: Option<NonZeroU32>,
    /// Rate at which visitors are admitted; [`Rate::UNLIMITED`]: as fast as sessions become free.
    pub admit: Rate,
    /// Duration without a request after which a session ends.
    pub idle: Duration,
    /// Duration within which a called visitor must arrive; then the call expires.
    pub claim: Duration,
    /// Instant of the opening: everybody waits before it.
    pub opens: Option<Moment>,
    /// Whether calls are paused.
    pub is_paused: bool,
}

impl RoomLimits {
    /// Returns whether the room has opened: the opening has passed, or there is none.
    pub(super) fn is_opening_over(&self, now: Moment) -> bool {
        self.opens.is_none_or(|opens| opens <= now)
    }

    /// Returns the maximum of visitors inside.
    pub fn max_sessions(&self) -> u64 {
        self.sessions.map_or(MAX_SESSIONS, NonZeroU32::get).into()
    }

    /// Returns the duration between two calls; zero if only sessions bound them.
    pub fn interval(&self) -> Duration {
        if self.admit.is_unlimited() {
            return Duration::ZERO;
        }
        let nanos = self.admit.ticks_per_request() / self.admit.ticks_per_nano();
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the upper bound of admitted visitors per second, from the limits alone.
    ///
    /// The bound by sessions is their number divided by the duration of the shortest visit. Such a
    /// visit has one request, so its session ends `idle` later. An `idle` below a second counts as
    /// one.
    pub(super) fn expected_pace(&self) -> f64 {
        let admit = self.admit.per_second();
        let idle = self.idle.as_secs_f64().max(1.0);
        let by_sessions = self.sessions.map(|it| f64::from(it.get()) / idle);
        admit.min(by_sessions.unwrap_or(f64::INFINITY))
    }
}
