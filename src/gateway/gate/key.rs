//! The keys by which requests share a gate.

use std::sync::Arc;

use limit::stable_hash;
use ring::digest::{Context, SHA256};

use crate::zone::Key;

/// The key by which a request shares a gate.
///
/// A reload may give the gate the keys of another zone while requests wait. Their keys stay those
/// of the zone by which they joined: its plans apply, and it says how the keys are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyAtGate {
    /// The name of the zone; `None` if the origin names none.
    pub zone: Option<Arc<str>>,
    /// The key, empty for all requests without a zone.
    pub key: Key,
}

impl KeyAtGate {
    /// What the back-off knows it by; `None`: the origin names no zone.
    pub(super) fn hash(&self) -> Option<u64> {
        self.zone.as_ref().map(|_| stable_hash(&self.key))
    }

    /// What it hashes to, the same at all gateways and in all versions.
    ///
    /// It is cryptographic, so that nobody finds a key that takes another one's turns.
    pub(super) fn name(&self) -> u64 {
        let zone = self.zone.as_deref().unwrap_or_default();
        let mut hash = Context::new(&SHA256);
        hash.update(&(zone.len() as u64).to_le_bytes());
        hash.update(zone.as_bytes());
        hash.update(&self.key);
        let hash = hash.finish();
        let first = hash.as_ref().first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(first)
    }
}
