//! Lag of a client behind the minimum rate at which it must send or receive a body.
//!
//! A client that lags too much is disconnected, so that slow clients cannot hold all connections.

use std::task::{Context, Poll};
use std::time::Duration;

use limit::nanos;

use crate::time::deadline::Deadline;

/// Minimum progress of a client with a body.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    /// Maximum time in which no byte moves.
    pub pause: Duration,
    /// Maximum time that a client may be behind the minimum rate.
    pub span: Duration,
    /// Time for one byte at the minimum rate, in nanoseconds.
    ///
    /// `u32::MAX`: any byte clears the whole lag.
    pub byte_nanos: u32,
}

/// Time spent waiting for a client, minus the time that its bytes take at the minimum rate.
///
/// Never below zero: a fast start is no credit for a slow rest. Only time counts in which the
/// gateway waits for the client, so nothing else has to be remembered between two waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    nanos: u64,
}

impl Lag {
    /// Returns the lag after a wait for the client in which it then moved `bytes`.
    ///
    /// A wait that was noticed too late, because the machine is busy, counts as a wait of
    /// `floor.span`: the client's bytes arrived in time.
    fn after(self, waited: Duration, bytes: u64, floor: Floor) -> Self {
        if floor.byte_nanos == u32::MAX {
            return Self::default();
        }
        let lag = self.nanos.saturating_add(nanos(waited));
        let credit = bytes.saturating_mul(floor.byte_nanos.into());
        Self {
            nanos: lag.min(nanos(floor.span)).saturating_sub(credit),
        }
    }

    /// Returns how much longer the client may move nothing.
    fn time_left(self, floor: Floor) -> Duration {
        let left = floor.span.saturating_sub(Duration::from_nanos(self.nanos));
        left.min(floor.pause)
    }

    /// Records that the client moved `bytes`. If it moved any, this ends the wait for it.
    ///
    /// `waiting`: deadline of the wait, which [`Lag::poll_too_slow`] starts. The clock is read only
    /// if the client lags or there was a wait.
    pub fn moved(&mut self, waiting: &mut Deadline, bytes: u64, floor: Floor) {
        if bytes == 0 || (self.nanos == 0 && !waiting.is_running()) {
            return;
        }
        // Without a wait, `waiting` has a very long time left, so `waited` is 0.
        let waited = self.time_left(floor).saturating_sub(waiting.left());
        waiting.stop();
        *self = self.after(waited, bytes, floor);
    }

    /// Returns ready when the client is too slow. Called while the gateway waits for it.
    pub fn poll_too_slow(
        self,
        waiting: &mut Deadline,
        cx: &mut Context<'_>,
        floor: Floor,
    ) -> Poll<()> {
        waiting.start(self.time_left(floor));
        waiting.poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a floor. `rate`: bytes a second, 0 for none.
    fn floor(span: u64, rate: u32) -> Floor {
        Floor {
            pause: Duration::from_secs(span),
            span: Duration::from_secs(span),
            byte_nanos: 1_000_000_000_u32.checked_div(rate).unwrap_or(u32::MAX),
        }
    }

    /// Returns the seconds left after each wait. A wait is its seconds and the bytes that end it.
    fn left_after(floor: Floor, waits: &[(u64, u64)]) -> Vec<u64> {
        let mut lag = Lag::default();
        let left = waits.iter().map(|(waited, bytes)| {
            lag = lag.after(Duration::from_secs(*waited), *bytes, floor);
            lag.time_left(floor).as_secs()
        });
        left.collect()
    }

    #[test]
    fn a_byte_reduces_the_lag_by_its_time_at_the_rate() {
        let at_250 = floor(30, 250);
        let left = |waits| left_after(at_250, waits);
        assert_eq!(left(&[(10, 250)]), [21]);
        assert_eq!(left(&[(10, 250), (20, 250)]), [21, 2]);
        assert_eq!(left(&[(10, 2500)]), [30]);
        assert_eq!(left(&[(29, 1), (0, 500)]), [1, 3]);
        // A fast start is no credit.
        assert_eq!(left(&[(0, 1 << 40), (30, 0)]), [30, 0]);
        // A wait that is noticed too late counts as one span.
        assert_eq!(left(&[(1_000, 2500)]), [10]);
        // Without a rate, any byte clears the lag.
        assert_eq!(left_after(floor(30, 0), &[(29, 1), (29, 1)]), [30, 30]);
        // A pause is bounded, too.
        let pause = Duration::from_secs(7);
        let short_pause = Floor { pause, ..at_250 };
        assert_eq!(left_after(short_pause, &[(0, 1), (25, 1)]), [7, 5]);
    }

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn a_client_that_keeps_the_rate_is_never_too_slow(
            rate in 1_u32..1 << 20,
            // Microseconds of each wait, and the bytes beyond those that the rate requires.
            waits in prop::collection::vec((0_u64..30_000_000, 0_u64..1000), 1..50),
        ) {
            let floor = floor(30, rate);
            let mut lag = Lag::default();
            for (micros, more) in waits {
                let bytes = (micros * 1000).div_ceil(floor.byte_nanos.into()) + more;
                lag = lag.after(Duration::from_micros(micros), bytes, floor);
                prop_assert_eq!(lag, Lag::default());
            }
        }

        /// Checks the bound: the waits take at most the span plus the time of the bytes.
        #[test]
        fn a_client_that_is_not_too_slow_kept_the_rate_except_for_one_span(
            rate in 1_u32..10_000,
            // Milliseconds of each wait, and the bytes that end it.
            waits in prop::collection::vec((0_u64..40_000, 0_u64..100_000), 1..80),
            first_counted in 0_usize..80,
        ) {
            let floor = floor(30, rate);
            let (mut lag, mut time, mut moved) = (Lag::default(), 0, 0);
            for (nth, (millis, bytes)) in waits.into_iter().enumerate() {
                let waited = Duration::from_millis(millis);
                if waited > lag.time_left(floor) {
                    // The deadline comes first.
                    break;
                }
                lag = lag.after(waited, bytes, floor);
                if nth >= first_counted {
                    time += millis;
                    moved += bytes;
                    let millis_of_bytes = moved * u64::from(floor.byte_nanos) / 1_000_000;
                    prop_assert!(time <= 30_000 + millis_of_bytes + 1, "{time} ms for {moved} bytes");
                }
            }
        }

        #[test]
        fn more_bytes_and_shorter_waits_never_reduce_the_time_left(
            before in 0_u64..40_000_000_000,
            rate in 0_u32..10_000,
            waited in 0_u64..40_000, less in 0_u64..40_000,
            bytes in 0_u64..u64::MAX, more in 0_u64..1000,
        ) {
            let floor = floor(30, rate);
            let lag = Lag { nanos: before };
            let millis = Duration::from_millis;
            let slow = lag.after(millis(waited), bytes, floor);
            let fast = lag.after(
                millis(waited.saturating_sub(less)), bytes.saturating_add(more), floor,
            );
            prop_assert!(fast.time_left(floor) >= slow.time_left(floor));
            prop_assert!(slow.time_left(floor) <= floor.span);
        }
    }
}
