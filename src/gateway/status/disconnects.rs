//! Clients that disconnected while their requests waited, for samples.
//!
//! A sample is the status of the gateway in one second.

use std::time::Duration;

use super::timestamp::seconds;
use crate::observe::metrics::Counts;

/// Minimum wait of a disconnected client that counts.
///
/// A client with a shorter wait had disconnected before its request was read, or for another reason
/// than the wait.
const MIN_WAIT: Duration = Duration::from_millis(100);

/// Clients that disconnected in a second while their requests waited.
pub(crate) struct Disconnects {
    /// Number of these clients.
    pub(crate) left: u64,
    /// Median of their waits, in seconds.
    pub(crate) left_after: Option<f64>,
}

impl Disconnects {
    /// Summarizes the waits of disconnected clients.
    pub(crate) fn of(waits: &Counts) -> Self {
        let waits = waits.clone().at_least(MIN_WAIT);
        Self {
            left: waits.total(),
            left_after: waits.quantile(0.5).map(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::metrics::AtomicHistogram;

    #[test]
    fn clients_that_disconnected_without_a_wait_are_left_out() {
        let waits = AtomicHistogram::default();
        for _ in 0..50 {
            waits.record(Duration::ZERO);
            waits.record(Duration::from_millis(50));
        }
        let too_short = Disconnects::of(&waits.counts());
        assert_eq!((too_short.left, too_short.left_after), (0, None));
        for _ in 0..3 {
            waits.record(Duration::from_secs(1));
        }
        let three = Disconnects::of(&waits.counts());
        assert_eq!(three.left, 3);
        let after = three.left_after.expect("they waited");
        assert!((after - 1.0).abs() < 0.07, "{after}");
    }
}
