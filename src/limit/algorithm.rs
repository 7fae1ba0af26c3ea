use std::fmt;
use std::str::FromStr;

/// How a zone counts the requests of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A bucket that leaks at the rate: what does not fit waits, up to `burst`. The only one that makes requests wait.
    #[default]
    LeakyBucket,
    /// Tokens, of which each request takes one, come at the rate until there are `burst` of them.
    TokenBucket,
    /// So many in each period; periods begin at multiples of their length since the Unix epoch.
    FixedWindow,
    /// So many in any period at all: each accepted request is remembered for one.
    SlidingWindowLog,
    /// Nearly so, by two numbers: those of this period, and a part of those of the one before.
    SlidingWindowCounter,
}

impl Algorithm {
    /// All of them, by the name that the file has for each.
    pub const NAMED: [(&'static str, Self); 5] = [
        ("leaky_bucket", Self::LeakyBucket),
        ("token_bucket", Self::TokenBucket),
        ("fixed_window", Self::FixedWindow),
        ("sliding_window_log", Self::SlidingWindowLog),
        ("sliding_window_counter", Self::SlidingWindowCounter),
    ];

    /// As the file has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.iter().find(|(_, it)| *it == self);
        named.map_or("leaky_bucket", |(name, _)| name)
    }

    /// Whether requests may wait for their turn.
    #[must_use]
    pub fn queues(self) -> bool {
        self == Self::LeakyBucket
    }

    /// Whether it counts whole requests in whole periods.
    #[must_use]
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

/// A name that none of the algorithms has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let known = Self::NAMED.iter().find(|(known, _)| *known == name);
        known.map(|(_, it)| *it).ok_or(UnknownAlgorithm)
    }
}
