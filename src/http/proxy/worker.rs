use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::watch;

use crate::gateway::Gateway;
use crate::http::downstream::StopSignal;
use crate::http::upstream::Pools;
use crate::pacer::Pacer;

/// What one worker thread keeps for the requests that it serves.
#[derive(Debug)]
pub struct Worker {
    gateway: watch::Receiver<Option<Arc<Gateway>>>,
    stop: Rc<StopSignal>,
    pub(super) pacer: Rc<Pacer>,
    pub(super) pools: Pools,
}

impl Worker {
    /// The state of the worker on this thread, which follows the gateway that `gateway` tells of.
    #[must_use]
    pub fn new(gateway: watch::Receiver<Option<Arc<Gateway>>>) -> Rc<Self> {
        let worker = Rc::new(Self {
            gateway,
            stop: Rc::default(),
            pacer: Pacer::here(),
            pools: Pools::default(),
        });
        actix_rt::spawn(Rc::clone(&worker).follow_stop());
        worker
    }

    /// Tells this worker's connections when the gateway stops.
    async fn follow_stop(self: Rc<Self>) {
        let mut stopping = self.gateway().await.stopping();
        if stopping.wait_for(|stopping| *stopping).await.is_ok() {
            self.stop.stop();
        }
    }

    /// Tells when the gateway stops.
    #[must_use]
    pub fn stop_signal(&self) -> Rc<StopSignal> {
        Rc::clone(&self.stop)
    }

    /// The gateway in force, if the process has started.
    pub(super) fn gateway_now(&self) -> Option<Arc<Gateway>> {
        self.gateway.borrow().as_ref().map(Arc::clone)
    }

    /// The gateway in force. Waits for it while the process starts.
    pub async fn gateway(&self) -> Arc<Gateway> {
        if let Some(gateway) = self.gateway_now() {
            return gateway;
        }
        // Boxed, as only the first clients of all wait here.
        Box::pin(self.first_gateway()).await
    }

    async fn first_gateway(&self) -> Arc<Gateway> {
        loop {
            if let Some(gateway) = self.gateway_now() {
                return gateway;
            }
            if self
                .gateway
                .clone()
                .wait_for(Option::is_some)
                .await
                .is_err()
            {
                // The process failed to start, and is ending.
                std::future::pending::<()>().await;
            }
        }
    }
}
