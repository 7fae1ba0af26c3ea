use std::time::Duration;

use crate::store::Url;

/// `[redis]`: where the buckets are that several gateways share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redis {
    /// Address of the Redis.
    pub url: Url,
    /// How long a request waits for the response of Redis; never zero.
    pub timeout: Duration,
    /// Prefix of each key in Redis.
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

/// Which store keeps a zone's buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// The memory of this gateway, for this gateway only.
    #[default]
    Memory,
    /// Redis, shared by all gateways that use it.
    Redis,
}

impl StoreKind {
    /// All values with their names in the file.
    pub const NAMED: [(&'static str, Self); 2] = [("memory", Self::Memory), ("redis", Self::Redis)];

    /// The name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].0
    }
}

/// What happens to requests that the store does not decide in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// This gateway paces them itself, from the level that the store reported last.
    #[default]
    Local,
    /// They pass.
    Open,
    /// They are rejected with 503.
    Closed,
}

impl OnStoreFailure {
    /// All values with their names in the file.
    pub const NAMED: [(&'static str, Self); 3] = [
        ("local", Self::Local),
        ("open", Self::Open),
        ("closed", Self::Closed),
    ];

    /// The name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].0
    }
}
