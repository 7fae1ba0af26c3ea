//! Results of operations in the store.

use super::label::labels;

labels! {
    /// Result of an operation in the store that gateways share.
    pub enum StoreResult {
        /// The store did it.
        Ok = "ok",
        /// No response arrived in time.
        Late = "late",
        /// There was no connection, or it broke.
        Unreachable = "unreachable",
        /// The store refused it.
        Refused = "refused",
        /// It was not tried, because the store was out.
        Skipped = "skipped",
        /// It was not needed: a lease decided.
        Leased = "leased",
    }
}

impl StoreResult {
    /// Whether the store was asked.
    pub fn is_tried(self) -> bool {
        !matches!(self, Self::Skipped | Self::Leased)
    }
}
