//! Instants on a clock that never steps back.

use std::ops::Add;
use std::time::Duration;

/// Instant: nanoseconds since the Unix epoch, on a clock that never steps back.
///
/// Reaches to the year 2554. `limit` only compares instants; the caller reads the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// Returns the instant `nanos` nanoseconds after the Unix epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the Unix epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the duration from `earlier` to this instant; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Converts this instant to another clock.
    ///
    /// When this clock shows `there`, the other clock shows `here`.
    #[must_use]
    pub fn on_clock(self, there: Self, here: Self) -> Self {
        if self >= there {
            here + self.since(there)
        } else {
            here.before(there.since(self))
        }
    }

    /// Returns the instant `span` earlier, but not before the Unix epoch.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

/// Returns the nanoseconds of a duration, at most `u64::MAX`.
pub fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
