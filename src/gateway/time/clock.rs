//! Clock of the gateway: the only module that reads the system's time.
//!
//! A `Moment` is an instant in nanoseconds since the Unix epoch. Three more modules read
//! tokio's clock, which tests pause: `origin/dns.rs` for the age of DNS answers, `config/watch` for
//! the time since the last change of the watched file, and `store/timeout.rs` for the time in which
//! the process stood still.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use limit::Moment;
use rustix::time::{ClockId, Timespec, clock_gettime};
use tokio::time::sleep;

#[cfg(test)]
use super::simulated;

/// Returns the present instant of the machine's monotonic clock.
///
/// The monotonic clock is related to the wall clock once, at the first use in the process. So
/// instants count from the Unix epoch, all threads agree, and a later step of the wall clock has no
/// effect. Displayed times and times of the calendar go through [`to_wall`] and [`from_wall`].
pub fn now() -> Moment {
    #[cfg(test)]
    if let Some(time) = simulated::here() {
        return time.now();
    }
    Moment::from_nanos(epoch_nanos() + monotonic_nanos())
}

/// Returns the instant of the kernel's last tick: up to 10 ms ago, five times cheaper to read.
///
/// Meant for the deadlines of requests, most of which never expire.
pub fn coarse_now() -> Moment {
    Moment::from_nanos(epoch_nanos() + nanos(clock_gettime(ClockId::MonotonicCoarse)))
}

/// Returns when a file was last written, by the wall clock and at most now; `None` if unknown.
pub fn changed(file: &Path) -> Option<Moment> {
    let written_at = fs::metadata(file).and_then(|file| file.modified()).ok()?;
    let since_epoch = written_at.duration_since(UNIX_EPOCH).ok()?;
    Some((Moment::default() + since_epoch).min(to_wall(now())))
}

/// Converts `moment` to the machine's monotonic clock, which the kernel's timers use.
pub fn monotonic(moment: Moment) -> Timespec {
    let nanos = moment.as_nanos().saturating_sub(epoch_nanos());
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanos % 1_000_000_000).try_into().unwrap_or_default(),
    }
}

/// Returns the present time of the wall clock, which may be set back.
///
/// Meant for comparisons with the times of other processes.
pub fn wall() -> Moment {
    #[allow(clippy::disallowed_methods)]
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Moment::default() + wall
}

/// Interval between comparisons of the monotonic clock and the wall clock.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);

/// Smallest difference that is a step of the wall clock, in nanoseconds.
///
/// Both clocks are read one after the other, so smaller differences are no steps.
const MIN_STEP: u64 = 50_000_000;

/// Nanoseconds by which the wall clock has stepped ahead since the process started.
static STEPPED: AtomicI64 = AtomicI64::new(0);

/// Returns by how many nanoseconds the wall clock is ahead of [`now`]: 0 until it steps.
pub fn stepped() -> i64 {
    #[cfg(test)]
    if let Some(stepped) = simulated::stepped() {
        return stepped;
    }
    STEPPED.load(Ordering::Relaxed)
}

/// Returns the time of the wall clock at `moment`.
pub fn to_wall(moment: Moment) -> Moment {
    Moment::from_nanos(moment.as_nanos().saturating_add_signed(stepped()))
}

/// Returns the instant at which the wall clock shows `wall`.
pub fn from_wall(wall: Moment) -> Moment {
    Moment::from_nanos(
        wall.as_nanos()
            .saturating_add_signed(stepped().saturating_neg()),
    )
}

/// Follows the steps of the wall clock, such as those of NTP after a boot. Never ends.
///
/// After a step, [`to_wall`] and [`from_wall`] are right within a second.
pub async fn follow_wall() {
    loop {
        let ahead = nanos_ahead(wall(), now());
        if is_step(stepped(), ahead) {
            STEPPED.store(ahead, Ordering::Relaxed);
        }
        sleep(COMPARE_INTERVAL).await;
    }
}

/// Returns by how many nanoseconds `wall` is later than `now`.
fn nanos_ahead(wall: Moment, now: Moment) -> i64 {
    let nanos = i128::from(wall.as_nanos()) - i128::from(now.as_nanos());
    i64::try_from(nanos).unwrap_or_default()
}

/// Returns whether the wall clock has stepped between two values of [`nanos_ahead`].
fn is_step(before: i64, ahead: i64) -> bool {
    ahead.abs_diff(before) >= MIN_STEP
}

/// Returns the Unix time, in nanoseconds, at which the monotonic clock was zero.
fn epoch_nanos() -> u64 {
    static EPOCH: OnceLock<u64> = OnceLock::new();
    *EPOCH.get_or_init(|| wall().as_nanos().saturating_sub(monotonic_nanos()))
}

/// Returns the machine's monotonic time, in nanoseconds since the machine was started.
pub fn monotonic_nanos() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// Converts a time of the kernel to nanoseconds.
fn nanos(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_wall_clock_is_followed_and_a_slow_reading_is_none() {
        let at_second = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let two_hours = 7_200_000_000_000;
        assert_eq!(nanos_ahead(at_second(8200), at_second(1000)), two_hours);
        assert_eq!(nanos_ahead(at_second(1000), at_second(8200)), -two_hours);
        assert!(is_step(0, two_hours) && is_step(two_hours, 0));
        assert!(!is_step(two_hours, two_hours + 1_000_000));
        assert!(!is_step(0, -49_999_999));
    }
}
