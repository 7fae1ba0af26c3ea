use std::sync::Arc;

use super::StoreHealth;
use crate::store::Error;

/// A worker's part in an outage of the store.
///
/// It ends when this is dropped, also when the store is no longer used.
pub(super) struct WorkerOutage {
    store_health: Arc<StoreHealth>,
    is_back: bool,
}

impl WorkerOutage {
    /// The worker can no longer reach the store.
    pub(super) fn begin(store_health: &Arc<StoreHealth>, error: &Error) -> Self {
        store_health.lost(error);
        Self {
            store_health: Arc::clone(store_health),
            is_back: false,
        }
    }

    /// The worker reaches it again.
    pub(super) fn end(mut self) {
        self.is_back = true;
    }
}

impl Drop for WorkerOutage {
    fn drop(&mut self) {
        self.store_health.found(self.is_back);
    }
}
