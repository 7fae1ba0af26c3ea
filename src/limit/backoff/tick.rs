use std::time::Duration;

use crate::Moment;

const NANOS: u64 = 100_000_000;

/// The time between two ticks, at which all rules are applied.
pub(super) const TICK: Duration = Duration::from_nanos(NANOS);

/// The first tick after `now`.
///
/// Ticks are at multiples of their length since the Unix epoch.
pub(super) fn tick_after(now: Moment) -> Moment {
    Moment::from_nanos((now.as_nanos() / NANOS + 1).saturating_mul(NANOS))
}
