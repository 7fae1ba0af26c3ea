use std::fmt;
use std::str::FromStr;

/// How a zone counts the requests of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A bucket that leaks at the rate. Requests above the rate wait, up to `burst`.
    ///
    /// The only algorithm that makes requests wait.
    #[default]
    LeakyBucket,
    /// Each request takes a token. Tokens arrive at the rate, up to `burst` of them.
    TokenBucket,
    /// At most so many requests in each period.
    ///
    /// Periods begin at multiples of their length since the Unix epoch.
    FixedWindow,
    /// At most so many requests in any period at all.
    ///
    /// Each accepted request is remembered for one period.
    SlidingWindowLog,
    /// Approximates the sliding window with two numbers.
    ///
    /// They are the count of this period and a fraction of the count of the period before.
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

    /// The name in `gateway.toml`.
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.iter().find(|(_, it)| *it == self);
        named.map_or("leaky_bucket", |(name, _)| name)
    }

    /// Whether requests may wait for their turn.
    pub fn queues(self) -> bool {
        self == Self::LeakyBucket
    }

    /// Whether periods begin at multiples of their length since the Unix epoch: a day's at midnight.
    pub fn follows_calendar(self) -> bool {
        matches!(self, Self::FixedWindow | Self::SlidingWindowCounter)
    }

    /// Whether the algorithm counts whole requests in whole periods.
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

/// The error for a name that is no algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let known = Self::NAMED.iter().find(|(known, _)| *known == name);
        known.map(|(_, it)| *it).ok_or(UnknownAlgorithm)
    }
}
