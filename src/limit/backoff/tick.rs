//! Ticks: the instants, ten a second, at which a back-off applies its rules.

use std::time::Duration;

use crate::Moment;

const NANOS: u64 = 100_000_000;

/// Time between two ticks.
pub(super) const TICK: Duration = Duration::from_nanos(NANOS);

/// Returns the first tick after `now`.
///
/// Ticks are at multiples of their length since the Unix epoch.
pub(super) fn tick_after(now: Moment) -> Moment {
    Moment::from_nanos((now.as_nanos() / NANOS + 1).saturating_mul(NANOS))
}
