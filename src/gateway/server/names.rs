//! Regular DNS lookup of names whose addresses are separate servers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::http::gateway::{Addresses, Gateway};

/// Interval of lookups of a name, the same as for a name that is one server.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Looks up the names of the gateway in force.
pub(super) struct NameWatch {
    /// Receives the gateway in force.
    gateways: watch::Receiver<Option<Arc<Gateway>>>,
    /// Whether the names of the gateway in force were looked up.
    has_looked: bool,
}

impl NameWatch {
    pub(super) fn new(mut gateways: watch::Receiver<Option<Arc<Gateway>>>) -> Self {
        gateways.mark_unchanged();
        Self {
            gateways,
            has_looked: false,
        }
    }

    /// Waits until the addresses of a name differ from those in force, and returns all addresses.
    ///
    /// Nothing is lost if the future is dropped.
    pub(super) async fn changed(&mut self) -> Addresses {
        loop {
            let gateway = self.gateways.borrow_and_update().clone();
            match gateway.filter(|it| it.resolves_names()) {
                None => {
                    if self.gateways.changed().await.is_err() {
                        // The process ends.
                        std::future::pending::<()>().await;
                    }
                    self.has_looked = false;
                }
                Some(_) if self.has_looked => {
                    // A new gateway in force may have other names.
                    let _early = timeout(LOOK_EVERY, self.gateways.changed()).await;
                    self.has_looked = false;
                }
                Some(gateway) => {
                    // Boxed, because few gateways look up names.
                    let found = Box::pin(gateway.look_up()).await;
                    self.has_looked = true;
                    if found != gateway.addresses() {
                        return found;
                    }
                }
            }
        }
    }
}
