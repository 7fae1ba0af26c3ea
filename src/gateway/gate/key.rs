//! Key by which a request shares a gate with others: requests of one key are in one queue.

use std::sync::Arc;

use limit::stable_hash;
use ring::digest::{Context, SHA256};

use crate::zone::Key;

/// Key of a request at a gate: that of the zone which the origin names as `share`.
///
/// A reload may give the gate the keys of another zone while requests wait. A waiter keeps the key
/// of the zone by which it joined. The plans of that zone apply, and it decides how keys are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyAtGate {
    /// Name of the zone; `None` if the origin names no zone.
    pub zone: Option<Arc<str>>,
    /// Key within the zone. Empty for all requests if there is no zone.
    pub key: Key,
}

impl KeyAtGate {
    /// Returns the hash by which the back-off knows the key; `None` if the origin names no zone.
    pub(super) fn hash(&self) -> Option<u64> {
        self.zone.as_ref().map(|_| stable_hash(&self.key))
    }

    /// Returns a hash that is the same at all gateways and in all versions.
    ///
    /// The hash is cryptographic, so that nobody can find a key that collides with another client's
    /// key and takes its slots.
    pub(super) fn cluster_hash(&self) -> u64 {
        let zone = self.zone.as_deref().unwrap_or_default();
        let mut hash = Context::new(&SHA256);
        hash.update(&(zone.len() as u64).to_le_bytes());
        hash.update(zone.as_bytes());
        hash.update(&self.key);
        let digest = hash.finish();
        // The first eight of its 32 bytes.
        let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(first)
    }
}
