use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::http::gateway::Gateway;

/// Whether the gateway accepts traffic, readable from any thread.
#[derive(Clone, Debug)]
pub struct Health {
    accepting: Arc<AtomicBool>,
    gateway: watch::Receiver<Option<Arc<Gateway>>>,
}

impl Health {
    /// The health of the gateway in `gateway`, which does not accept traffic yet.
    #[must_use]
    pub fn of(gateway: watch::Receiver<Option<Arc<Gateway>>>) -> Self {
        Self {
            accepting: Arc::default(),
            gateway,
        }
    }

    /// Sets whether the gateway listens for clients.
    pub fn set_accepting(&self, accepting: bool) {
        self.accepting.store(accepting, Ordering::Relaxed);
    }

    /// Whether the gateway listens for clients and has an origin that can respond.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let gateway = self.gateway.borrow().as_ref().map(Arc::clone);
        self.accepting.load(Ordering::Relaxed) && gateway.is_some_and(|it| it.has_origin())
    }
}
