//! Operations of scripts in Redis on one key of a zone, in the form that the scripts read.
//!
//! A *join* asks for a verdict on a request and charges it, a *refund* takes a charge back, a
//! *retune* changes the rate. `calls` groups the operations into calls.

use std::time::Duration;

use config::redis::double;
use limit::{Algorithm, Delay, Moment};

use super::{Join, Refund, Retune, StoreRate};

/// Command to a script, with the byte that encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptCommand {
    /// Decides on a request, and charges it if it is accepted.
    Join = 1,
    /// Takes a charge back.
    Refund = 2,
    /// Forgets what a leaky bucket was charged behind the charge of the last waiter.
    Forget = 3,
    /// Changes the rate of a key that has waiters.
    Retune = 4,
}

/// Operation of a script on one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation<'a> {
    pub(super) key: &'a [u8],
    pub(super) algorithm: Algorithm,
    pub(super) pace: &'a StoreRate,
    /// Time of the operation. `None` means now, on Redis's clock.
    pub(super) at: Option<Moment>,
    pub(super) entry: Entry,
}

/// Parameters of an operation. Consecutive equal operations are one entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) cost: u32,
    /// Numbers, as the scripts document them.
    pub(super) numbers: [f64; 3],
}

impl Entry {
    fn new(cost: u32, numbers: [f64; 3]) -> Self {
        Self { cost, numbers }
    }
}

impl<'a> From<&'a Join<'_>> for Operation<'a> {
    fn from(join: &'a Join<'_>) -> Self {
        let limit = join.sent_limit();
        let burst = f64::from(limit.burst);
        // As `scripts/*.lua` say: burst, delay, and longest wait; or the count of a window.
        let numbers = match (join.algorithm, limit.delay) {
            (algorithm, _) if algorithm.has_windows() => {
                let window_count = f64::from(join.limit.burst) + 1.0;
                [window_count, 0.0, 0.0]
            }
            (Algorithm::LeakyBucket, Delay::Above(delay)) => {
                let max_wait = limit.max_wait.map(|span| span.as_micros());
                let max_wait = max_wait
                    .and_then(|micros| u64::try_from(micros).ok())
                    .filter(|micros| *micros < UNLIMITED_WAIT);
                [burst, f64::from(delay), max_wait.map_or(NONE, double)]
            }
            _ => [burst, NONE, NONE],
        };
        Self {
            key: join.key,
            algorithm: join.algorithm,
            pace: join.pace,
            at: join.at,
            entry: Entry::new(limit.cost.get(), numbers),
        }
    }
}

/// For the command to refund a charge, and for the one to forget all charges behind it.
impl<'a> From<&'a Refund<'_>> for Operation<'a> {
    fn from(refund: &'a Refund<'_>) -> Self {
        // Number by which the script finds the charge: its slot, or its time.
        let charge_id = match refund.algorithm {
            Algorithm::LeakyBucket => double(refund.charge.slot),
            Algorithm::TokenBucket => NONE,
            _ => micros(refund.charge.at),
        };
        Self {
            key: refund.key,
            algorithm: refund.algorithm,
            pace: refund.pace,
            at: refund.at,
            entry: Entry::new(refund.charge.cost.get(), [charge_id, 0.0, 0.0]),
        }
    }
}

impl<'a> From<&'a Retune<'_>> for Operation<'a> {
    fn from(retune: &'a Retune<'_>) -> Self {
        Self {
            key: retune.key,
            algorithm: Algorithm::LeakyBucket,
            pace: retune.pace,
            at: None,
            entry: Entry::new(1, [0.0; 3]),
        }
    }
}

/// Number that a script reads as "none".
const NONE: f64 = -1.0;

/// `max_wait` in microseconds that counts as none: the scripts' numbers cannot hold it.
const UNLIMITED_WAIT: u64 = 1 << 52;

/// Returns the time of a call in microseconds; [`NONE`] for the time on Redis's clock.
pub(super) fn at_or_now(at: Option<Moment>) -> f64 {
    at.map_or(NONE, micros)
}

/// Converts an instant to the scripts' unit, microseconds.
pub(super) fn micros(instant: Moment) -> f64 {
    double(instant.as_nanos() / 1000)
}

/// Converts the scripts' microseconds to an instant.
pub(super) fn from_micros(micros: u64) -> Moment {
    Moment::from_nanos(micros.saturating_mul(1000))
}

/// Converts a duration to whole microseconds that the scripts can hold.
pub(super) fn span_micros(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).min(1e15).round()
}
