//! The five algorithms of a zone, and their names in the file.

use std::fmt;

/// Algorithm by which a zone counts the requests of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Leaky bucket that leaks at the rate. Requests above the rate wait, up to `burst`.
    ///
    /// The only algorithm that makes requests wait.
    #[default]
    LeakyBucket,
    /// Token bucket: a request takes a token. Tokens arrive at the rate, up to `burst` of them.
    TokenBucket,
    /// Upper bound of requests in each period.
    ///
    /// Periods begin at multiples of their length since the Unix epoch.
    FixedWindow,
    /// Upper bound of requests in any interval of one period's length.
    ///
    /// Each accepted request is remembered for one period.
    SlidingWindowLog,
    /// Approximation of the sliding window log by two counts.
    ///
    /// It adds the count of the current period and a fraction of the count of the previous one.
    SlidingWindowCounter,
}

impl Algorithm {
    /// All algorithms with their names in `gateway.toml`.
    pub const NAMED: [(&'static str, Self); 5] = [
        ("leaky_bucket", Self::LeakyBucket),
        ("token_bucket", Self::TokenBucket),
        ("fixed_window", Self::FixedWindow),
        ("sliding_window_log", Self::SlidingWindowLog),
        ("sliding_window_counter", Self::SlidingWindowCounter),
    ];

    /// Returns the name in `gateway.toml`.
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.iter().find(|(_, known)| *known == self);
        named.map_or("leaky_bucket", |(name, _)| name)
    }

    /// Returns whether requests may wait.
    pub fn queues(self) -> bool {
        self == Self::LeakyBucket
    }

    /// Returns whether periods begin at multiples of their length since the Unix epoch.
    ///
    /// A period of a day then begins at midnight UTC.
    pub fn follows_calendar(self) -> bool {
        matches!(self, Self::FixedWindow | Self::SlidingWindowCounter)
    }

    /// Returns whether the algorithm counts whole requests in whole periods.
    pub fn has_windows(self) -> bool {
        matches!(
            self,
            Self::FixedWindow | Self::SlidingWindowLog | Self::SlidingWindowCounter
        )
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
