//! The times at which clients call: in bursts, the same in each run.

use std::time::Duration;

use crate::support::figures::float;

/// One request that a client will send.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Time from the scene's start.
    pub at: Duration,
    pub path: &'static str,
}

/// Offset of a burst in its tenth, so that jitter does not move it into another tenth.
const OFFSET_IN_TENTH: Duration = Duration::from_millis(10);

/// Calls from `from` to `to` seconds: a burst each tenth of a second, on average `rate` a second.
///
/// Every third burst is three times as large as the others.
pub fn bursts(path: &'static str, from: f64, to: f64, rate: f64) -> Vec<Call> {
    const IN_A_SECOND: f64 = 10.0;
    /// The share of each burst in the calls of three bursts.
    const SHARES: [f64; 3] = [0.6, 0.2, 0.2];
    let mut calls = Vec::new();
    let mut owed = 0.0;
    for nth in 0.. {
        let at = from + float(nth) / IN_A_SECOND;
        if at + 0.5 / IN_A_SECOND > to {
            break;
        }
        owed += rate / IN_A_SECOND * 3.0 * SHARES[usize::try_from(nth % 3).unwrap_or_default()];
        while owed >= 1.0 {
            owed -= 1.0;
            let at = Duration::from_secs_f64(at) + OFFSET_IN_TENTH;
            calls.push(Call { at, path });
        }
    }
    calls
}

/// Returns `count` calls at one instant.
pub fn burst(path: &'static str, at: f64, count: usize) -> impl Iterator<Item = Call> {
    let at = Duration::from_secs_f64(at) + OFFSET_IN_TENTH;
    std::iter::repeat_n(Call { at, path }, count)
}
