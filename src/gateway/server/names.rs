//! Regular DNS lookup of the names whose addresses are separate servers of an origin.
//!
//! `http/gateway` makes servers of the addresses. A name that is one server is looked up by
//! `origin/dns`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::http::gateway::{Addresses, Gateway};

/// Interval of lookups of a name, the same as for a name that is one server.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(5);

/// Looks up the names of the gateway in force.
pub(super) struct NameWatch {
    /// Receives the gateway in force.
    gateways: watch::Receiver<Option<Arc<Gateway>>>,
    /// Whether the names of the gateway in force were looked up within the interval.
    is_looked_up: bool,
}

impl NameWatch {
    /// Creates the watch of the gateways that `gateways` receives. Looks up nothing yet.
    pub(super) fn new(mut gateways: watch::Receiver<Option<Arc<Gateway>>>) -> Self {
        gateways.mark_unchanged();
        Self {
            gateways,
            is_looked_up: false,
        }
    }

    /// Waits until the addresses of a name differ from those in force, and returns all addresses.
    ///
    /// Nothing is lost if the future is dropped.
    pub(super) async fn changed(&mut self) -> Addresses {
        loop {
            let gateway = self.gateways.borrow_and_update().clone();
            match gateway.filter(|gateway| gateway.resolves_names()) {
                None => {
                    if self.gateways.changed().await.is_err() {
                        // The process ends.
                        std::future::pending::<()>().await;
                    }
                    self.is_looked_up = false;
                }
                Some(_) if self.is_looked_up => {
                    // A new gateway in force may have other names: look them up early.
                    let _early = timeout(LOOKUP_INTERVAL, self.gateways.changed()).await;
                    self.is_looked_up = false;
                }
                Some(gateway) => {
                    // Boxed, because few gateways look up names.
                    let found = Box::pin(gateway.look_up()).await;
                    self.is_looked_up = true;
                    if found != gateway.addresses() {
                        return found;
                    }
                }
            }
        }
    }
}
