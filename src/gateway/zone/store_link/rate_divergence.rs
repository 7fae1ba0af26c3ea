//! Detection of different rates for one zone at several gateways.
//!
//! The store reports with each answer the rate that it has used. It is another gateway's rate if
//! that gateway has a newer file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use limit::Moment;

/// Time without a different rate after which all gateways count as agreeing again.
///
/// Another gateway's rate is in force only at the keys that it sent requests for. So one answer may
/// show that rate and the next may not.
const AGREED_AFTER: Duration = Duration::from_secs(10);

/// Tracks whether all gateways that share a zone have the same rate, as far as is known here.
#[derive(Debug, Default)]
pub(in crate::zone) struct RateDivergence {
    /// Time in nanoseconds at which another rate was last seen; 0 while all agree.
    ///
    /// [`DISCARDED`] if one was seen before this gateway's file got a new rate.
    differed: AtomicU64,
}

/// Value of `differed` for a rate that no longer counts. It is so old that the next answer with the
/// file's rate ends the divergence.
const DISCARDED: u64 = 1;

/// Change of the agreement between gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DivergenceChange {
    /// Another gateway has another rate.
    Differs,
    /// All gateways have the same rate again.
    Settled,
}

impl RateDivergence {
    /// Records whether the rate in force differs from this gateway's file. Returns a change.
    pub(super) fn note(&self, differs: bool, now: Moment) -> Option<DivergenceChange> {
        if differs {
            let now = now.as_nanos().max(DISCARDED);
            let before = self.differed.swap(now, Ordering::Relaxed);
            return (before == 0).then_some(DivergenceChange::Differs);
        }
        let before = self.differed.load(Ordering::Relaxed);
        if before == 0 || now.since(Moment::from_nanos(before)) < AGREED_AFTER {
            return None;
        }
        // Fails if another worker reports this at the same time, or has just seen another rate.
        let (differed, order) = (&self.differed, Ordering::Relaxed);
        let settled = differed.compare_exchange(before, 0, order, order);
        settled.is_ok().then_some(DivergenceChange::Settled)
    }

    /// Returns whether gateways differ: another rate was seen, and they do not agree again yet.
    pub(in crate::zone) fn is_seen(&self) -> bool {
        self.differed.load(Ordering::Relaxed) > DISCARDED
    }

    /// Discards what was seen before, because this gateway's file has a new rate.
    pub(in crate::zone) fn start_again(&self) {
        if self.differed.load(Ordering::Relaxed) > 0 {
            self.differed.store(DISCARDED, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFFERS: Option<DivergenceChange> = Some(DivergenceChange::Differs);
    const SETTLED: Option<DivergenceChange> = Some(DivergenceChange::Settled);

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(1_000_000_000_000_000_000 + seconds * 1_000_000_000)
    }

    #[test]
    fn alternating_answers_are_reported_once() {
        let divergence = RateDivergence::default();
        assert_eq!(divergence.note(false, at(0)), None);
        assert_eq!(divergence.note(true, at(0)), DIFFERS);
        for second in 0..100 {
            assert_eq!(divergence.note(false, at(second)), None);
            assert_eq!(divergence.note(true, at(second)), None);
        }
        assert_eq!(divergence.note(false, at(108)), None);
        assert_eq!(divergence.note(false, at(109)), SETTLED);
        assert_eq!(divergence.note(false, at(110)), None);
    }

    #[test]
    fn a_saved_file_agrees_with_the_first_answer() {
        let divergence = RateDivergence::default();
        divergence.start_again();
        assert_eq!(divergence.note(false, at(0)), None);
        assert_eq!(divergence.note(true, at(0)), DIFFERS);
        divergence.start_again();
        assert_eq!(divergence.note(false, at(0)), SETTLED);
    }
}
