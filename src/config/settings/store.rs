use std::time::Duration;

use crate::store::Url;

/// `[redis]`: where the buckets are that gateways share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redis {
    /// Where it is.
    pub url: Url,
    /// How long a request waits for its answer, above zero.
    pub timeout: Duration,
    /// What each of its keys begins with.
    pub prefix: String,
}

impl Default for Redis {
    fn default() -> Self {
        Self {
            url: Url::local(),
            timeout: Duration::from_millis(50),
            prefix: "drip:".to_owned(),
        }
    }
}

/// Who keeps a zone's buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeper {
    /// This gateway, for itself.
    #[default]
    Memory,
    /// Redis, for all gateways that ask it.
    Redis,
}

impl Keeper {
    /// With their names in a file.
    pub const NAMED: [(&'static str, Self); 2] = [("memory", Self::Memory), ("redis", Self::Redis)];

    /// Its name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].0
    }
}

/// What becomes of the requests that a store does not decide in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// This gateway paces them by itself, from the level that the store told it last.
    #[default]
    Local,
    /// They pass.
    Open,
    /// They are rejected with 503.
    Closed,
}

impl OnStoreFailure {
    /// With their names in a file.
    pub const NAMED: [(&'static str, Self); 3] = [
        ("local", Self::Local),
        ("open", Self::Open),
        ("closed", Self::Closed),
    ];

    /// Its name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].0
    }
}
