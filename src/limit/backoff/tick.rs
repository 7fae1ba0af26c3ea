//! Ticks: ten times a second, a back-off applies its rules.
//!
//! Also the tolerance for instants that other gateways report.

use std::time::Duration;

use crate::Moment;

const NANOS: u64 = 100_000_000;

/// Time between two ticks.
pub(super) const TICK: Duration = Duration::from_nanos(NANOS);

/// Tolerance of an estimated instant: two estimates closer than this are the same instant.
pub(super) const INSTANT_TOLERANCE: Duration = Duration::from_millis(300);

/// Upper bound of the ticks that are applied at once.
///
/// After a longer silence, older ticks are skipped: all limits have grown back by then.
const MAX_TICKS: u32 = 1000;

/// Returns the first tick after `now`.
///
/// Ticks are at multiples of [`TICK`] since the Unix epoch.
pub(super) fn tick_after(now: Moment) -> Moment {
    Moment::from_nanos((now.as_nanos() / NANOS + 1).saturating_mul(NANOS))
}

/// Returns the ticks from the tick `first` up to `now`, at most the last [`MAX_TICKS`].
pub(super) fn ticks_until(first: Moment, now: Moment) -> impl Iterator<Item = Moment> {
    let first = first.max(tick_after(now.before(TICK * MAX_TICKS)));
    let ticks = std::iter::successors(Some(first), |tick| Some(*tick + TICK));
    ticks
        .take(MAX_TICKS as usize)
        .take_while(move |tick| *tick <= now)
}
