//! Names whose addresses are servers of their own, looked up again and again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::http::gateway::{Addresses, Gateway};

/// Time between two lookups of a name, as between those of a name that is one server.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Looks up the names of the gateway in force.
pub(super) struct NameWatch {
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

    /// The addresses of all names, once they are others than those in force.
    ///
    /// Nothing is lost if the future is dropped.
    pub(super) async fn changed(&mut self) -> Addresses {
        loop {
            let gateway = self.gateways.borrow_and_update().clone();
            let Some(gateway) = gateway.filter(|it| it.resolves_names()) else {
                self.wait_for_gateway().await;
                continue;
            };
            if self.has_looked {
                // A gateway that comes in force may have other names.
                let _early = timeout(LOOK_EVERY, self.gateways.changed()).await;
                self.has_looked = false;
                continue;
            }
            // Boxed, because few gateways look up names.
            let found = Box::pin(gateway.look_up()).await;
            self.has_looked = true;
            if found != gateway.addresses() {
                return found;
            }
        }
    }

    async fn wait_for_gateway(&mut self) {
        if self.gateways.changed().await.is_err() {
            // The process ends.
            std::future::pending::<()>().await;
        }
        self.has_looked = false;
    }
}
