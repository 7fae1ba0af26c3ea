use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the gateway accepts traffic, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<AtomicBool>);

impl Health {
    /// Sets whether it does.
    pub fn set_ready(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    /// Whether it does.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
