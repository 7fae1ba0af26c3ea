use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::http::gateway::Gateway;

/// What `/readyz` says while no origin has a server in use.
pub(super) const NO_ORIGIN: &str = "no origin has a server in use";

/// Whether the gateway accepts traffic, readable from any thread.
#[derive(Clone, Debug)]
pub struct Health {
    accepting: Arc<AtomicBool>,
    gateway: watch::Receiver<Option<Arc<Gateway>>>,
}

impl Health {
    /// The health of the gateway in `gateway`, which does not accept traffic yet.
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

    /// Why the gateway can do nothing useful for clients now; `None` if it can.
    ///
    /// It can while no server is in use, if it lets requests or visitors wait or has stale responses.
    pub fn trouble(&self) -> Option<String> {
        let gateway = self.gateway.borrow().as_ref().map(Arc::clone);
        let Some(gateway) = gateway.filter(|_| self.accepting.load(Ordering::Relaxed)) else {
            return Some("it is starting or stopping".to_owned());
        };
        if !gateway.has_origin() && !gateway.bridges_outages() {
            return Some(NO_ORIGIN.to_owned());
        }
        let mut zones = gateway.zones_in_use();
        zones.find(|zone| zone.is_paused()).map(|zone| {
            let name = &zone.settings().name;
            format!("zone {name} has panicked several times and pauses; see the log")
        })
    }
}
