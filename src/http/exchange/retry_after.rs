use std::time::Duration;

use super::ratelimit_headers::whole_seconds;

/// When the same request may come again.
#[derive(Clone, Copy, Debug)]
pub(super) enum RetryAfter {
    /// There is a turn for it then, if no other request takes it.
    Turn(Duration),
    /// It may be worth a try then.
    Guess(Duration),
}

impl RetryAfter {
    /// In whole seconds, as `Retry-After` has it. At least 1.
    pub(super) fn seconds(self) -> u64 {
        let (Self::Turn(span) | Self::Guess(span)) = self;
        whole_seconds(span).max(1)
    }

    /// In milliseconds, as clients of gRPC read it. At least 1.
    ///
    /// A guess is not shorter than in seconds: clients that wait a few milliseconds for a queue
    /// that has just become too long would come again and again.
    pub(super) fn millis(self) -> u128 {
        match self {
            Self::Turn(span) => span.as_nanos().div_ceil(1_000_000).max(1),
            Self::Guess(_) => u128::from(self.seconds()) * 1000,
        }
    }
}
