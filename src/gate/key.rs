//! The keys by which requests share a gate.

use std::sync::Arc;

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
