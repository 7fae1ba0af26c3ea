use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::gateway::Gateway;

/// Whether the gateway accepts traffic, from any thread.
#[derive(Clone, Debug)]
pub struct Health {
    accepting: Arc<AtomicBool>,
    gateway: watch::Receiver<Option<Arc<Gateway>>>,
}

impl Health {
    /// Of the gateway that `gateway` tells of, which does not accept traffic yet.
    #[must_use]
    pub fn of(gateway: watch::Receiver<Option<Arc<Gateway>>>) -> Self {
        Self {
            accepting: Arc::default(),
            gateway,
        }
    }

    /// Sets whether clients are listened to.
    pub fn set_accepting(&self, accepting: bool) {
        self.accepting.store(accepting, Ordering::Relaxed);
    }

    /// Whether they are, and there is an origin that could answer them.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let gateway = self.gateway.borrow().as_ref().map(Arc::clone);
        self.accepting.load(Ordering::Relaxed) && gateway.is_some_and(|it| it.has_origin())
    }
}
