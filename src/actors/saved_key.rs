use super::answer::Key;
use crate::limit::{Rate, SavedAccount};

/// What a zone keeps of a key when its process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedKey {
    /// The key's bytes.
    pub key: Key,
    /// The rate under which it was charged.
    pub rate: Rate,
    /// What it was charged; `None` if that has drained, and only that the key is known matters.
    pub account: Option<SavedAccount>,
}
