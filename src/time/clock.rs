//! The clock: the only module that reads the system's time.
//!
//! tokio's clock, which tests pause, is read in two more places: for the age of DNS answers
//! (`origin/dns.rs`) and for how long the watched file has been quiet (`config/watch`).

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

#[cfg(test)]
use super::simulated::{self, SimulatedTime};
use crate::limit::Moment;

/// A source of the present moment: the machine's monotonic clock, or one moved by a test.
///
/// The monotonic clock is related to the wall clock once, on the first use in the process. So
/// moments count from the Unix epoch, all threads agree, and a later step of the wall clock has no
/// effect.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's clock.
    Machine,
    /// A clock that stands still until it is set.
    Virtual(Rc<Cell<Moment>>),
    /// A gateway's clock in a simulation.
    #[cfg(test)]
    #[allow(private_interfaces, reason = "it is there for unit tests alone")]
    Simulated(Rc<dyn SimulatedTime>),
}

impl Clock {
    /// A clock that stands at `moment`.
    #[must_use]
    pub fn standing_at(moment: Moment) -> Self {
        Self::Virtual(Rc::new(Cell::new(moment)))
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Moment {
        match self {
            Self::Machine => Moment::from_nanos(epoch_nanos() + monotonic_nanos()),
            Self::Virtual(moment) => moment.get(),
            #[cfg(test)]
            Self::Simulated(time) => time.now(),
        }
    }
}

/// The machine's present moment.
#[must_use]
pub fn now() -> Moment {
    #[cfg(test)]
    if let Some(time) = simulated::here() {
        return time.now();
    }
    Clock::Machine.now()
}

/// The machine's moment at the kernel's last tick: up to 10 ms ago, five times cheaper to read.
///
/// Meant for the deadlines of many requests, few of which are ever met.
#[must_use]
pub fn coarse_now() -> Moment {
    Moment::from_nanos(epoch_nanos() + nanos(clock_gettime(ClockId::MonotonicCoarse)))
}

/// When a file was last written, but not later than now; `None` if unknown.
#[must_use]
pub fn changed(file: &Path) -> Option<Moment> {
    let written = fs::metadata(file).and_then(|file| file.modified()).ok()?;
    let since_epoch = written.duration_since(UNIX_EPOCH).ok()?;
    Some((Moment::default() + since_epoch).min(now()))
}

/// Converts `moment` to the machine's monotonic clock, which the kernel's timers use.
#[must_use]
pub fn monotonic(moment: Moment) -> Timespec {
    let nanos = moment.as_nanos().saturating_sub(epoch_nanos());
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanos % 1_000_000_000).try_into().unwrap_or_default(),
    }
}

/// The present moment by the wall clock, which may be set back.
///
/// Meant to be compared by another process.
#[must_use]
pub fn wall() -> Moment {
    #[allow(clippy::disallowed_methods)]
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Moment::default() + wall
}

/// The Unix time, in nanoseconds, at which the monotonic clock was zero.
fn epoch_nanos() -> u64 {
    static EPOCH: OnceLock<u64> = OnceLock::new();
    *EPOCH.get_or_init(|| wall().as_nanos().saturating_sub(monotonic_nanos()))
}

/// The time of the machine's monotonic clock, in nanoseconds: since the machine was started.
#[must_use]
pub fn since_boot() -> u64 {
    monotonic_nanos()
}

/// The time of the machine's monotonic clock, in microseconds.
#[must_use]
pub fn monotonic_micros() -> u64 {
    monotonic_nanos() / 1000
}

fn monotonic_nanos() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

fn nanos(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or_default()
}
