//! What scripts do to one key, as they read it.

use config::redis::double;
use limit::{Algorithm, Delay, Moment};

use super::{Join, Pace, Refund, Retune};

/// What a script is asked for, with the byte that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptCommand {
    Join = 1,
    Refund = 2,
    Forget = 3,
    Retune = 4,
}

/// Something that a script does to one key.
pub(super) trait Operation {
    const COMMAND: ScriptCommand;

    fn subject(&self) -> Subject<'_>;
    fn entry(&self) -> Entry;
}

/// The key of an operation, and what the operations of one call have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) key: &'a [u8],
    pub(super) algorithm: Algorithm,
    pub(super) pace: &'a Pace,
    /// `None` means now, on Redis's clock.
    pub(super) at: Option<Moment>,
}

/// How a script reads an operation: equal ones in a row are one entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) cost: u32,
    /// As the scripts document them.
    pub(super) numbers: [f64; 3],
}

impl Operation for Join<'_> {
    const COMMAND: ScriptCommand = ScriptCommand::Join;

    fn subject(&self) -> Subject<'_> {
        Subject {
            key: self.key,
            algorithm: self.algorithm,
            pace: self.pace,
            at: self.at,
        }
    }

    fn entry(&self) -> Entry {
        let limit = self.sent_limit();
        let burst = f64::from(limit.burst);
        let numbers = match (self.algorithm, limit.delay) {
            (it, _) if it.has_windows() => [f64::from(self.limit.burst) + 1.0, 0.0, 0.0],
            (Algorithm::LeakyBucket, Delay::Above(delay)) => {
                // A longer wait counts as unlimited: the scripts' numbers cannot hold it.
                let patience = limit.max_wait.map(|span| span.as_micros());
                let patience = patience
                    .and_then(|micros| u64::try_from(micros).ok())
                    .filter(|micros| *micros < 1 << 52);
                [burst, f64::from(delay), patience.map_or(NONE, double)]
            }
            _ => [burst, NONE, NONE],
        };
        Entry {
            cost: limit.cost.get(),
            numbers,
        }
    }
}

impl Operation for Refund<'_> {
    const COMMAND: ScriptCommand = ScriptCommand::Refund;

    fn subject(&self) -> Subject<'_> {
        Subject {
            key: self.key,
            algorithm: self.algorithm,
            pace: self.pace,
            at: self.at,
        }
    }

    fn entry(&self) -> Entry {
        let charged = match self.algorithm {
            Algorithm::LeakyBucket => double(self.charge.place),
            Algorithm::TokenBucket => NONE,
            _ => micros(self.charge.at),
        };
        Entry {
            cost: self.charge.cost.get(),
            numbers: [charged, 0.0, 0.0],
        }
    }
}

/// Forgets what is charged behind the charge of the last who waits. For leaky buckets only.
pub(super) struct ForgetBehind<'a>(pub(super) &'a Refund<'a>);

impl Operation for ForgetBehind<'_> {
    const COMMAND: ScriptCommand = ScriptCommand::Forget;

    fn subject(&self) -> Subject<'_> {
        self.0.subject()
    }

    fn entry(&self) -> Entry {
        self.0.entry()
    }
}

impl Operation for Retune<'_> {
    const COMMAND: ScriptCommand = ScriptCommand::Retune;

    fn subject(&self) -> Subject<'_> {
        Subject {
            key: self.key,
            algorithm: Algorithm::LeakyBucket,
            pace: self.pace,
            at: None,
        }
    }

    fn entry(&self) -> Entry {
        Entry {
            cost: 1,
            numbers: [0.0; 3],
        }
    }
}

/// What a script reads as "none".
const NONE: f64 = -1.0;

/// A moment in the scripts' unit.
pub(super) fn micros(at: Moment) -> f64 {
    double(at.as_nanos() / 1000)
}
