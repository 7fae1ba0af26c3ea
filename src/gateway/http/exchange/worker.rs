//! State of one worker thread, shared by the requests that it serves.
//!
//! Each worker thread has its own connections to servers, and its own timer for departures:
//! requests that have waited and go to their origin at a given instant.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use tokio::sync::watch;

use crate::http::downstream::{StopSignal, Timeouts};
use crate::http::gateway::Gateway;
use crate::origin::Pools;
use crate::time::pacer::Pacer;

/// The gateway in use, as held by one worker.
pub struct CurrentGateway {
    gateway: Arc<Gateway>,
    timeouts: Rc<Timeouts>,
}

impl CurrentGateway {
    fn new(gateway: &Arc<Gateway>) -> Rc<Self> {
        Rc::new(Self {
            gateway: Arc::clone(gateway),
            timeouts: Rc::new(Timeouts::of(&gateway.settings().server)),
        })
    }

    /// Returns the timeouts of new client connections.
    pub(crate) fn timeouts(&self) -> Rc<Timeouts> {
        Rc::clone(&self.timeouts)
    }
}

impl Deref for CurrentGateway {
    type Target = Gateway;

    fn deref(&self) -> &Gateway {
        &self.gateway
    }
}

/// State that one worker thread keeps for the requests that it serves.
pub struct Worker {
    /// Reference to this worker, for tasks that outlive the request that starts them.
    own: Weak<Self>,
    /// Receives each new version of the gateway.
    gateway: RefCell<watch::Receiver<Option<Arc<Gateway>>>>,
    /// The gateway in use, as held by this thread's requests.
    ///
    /// An `Rc`, because with an `Arc` for each request all workers would write to the same counter.
    current: RefCell<Option<Rc<CurrentGateway>>>,
    stop: Rc<StopSignal>,
    pub(super) pacer: Rc<Pacer>,
    /// Pools of idle connections to servers.
    pub(super) pools: Pools,
}

impl Worker {
    /// Creates the state of the worker on this thread. It follows the changes of `gateway`.
    pub fn new(gateway: watch::Receiver<Option<Arc<Gateway>>>) -> Rc<Self> {
        let worker = Rc::new_cyclic(|own| Self {
            own: Weak::clone(own),
            current: RefCell::default(),
            stop: Rc::default(),
            pacer: Pacer::here(),
            pools: Pools::default(),
            gateway: RefCell::new(gateway),
        });
        actix_rt::spawn(Rc::clone(&worker).follow());
        worker
    }

    /// Follows changes of the gateway, and notifies this worker's connections of a stop.
    async fn follow(self: Rc<Self>) {
        let mut gateways = self.gateway.borrow().clone();
        let first = gateways.wait_for(Option::is_some).await;
        let stopping = first
            .ok()
            .and_then(|gateway| Some(gateway.as_ref()?.stopping()));
        let Some(mut stopping) = stopping else {
            return;
        };
        loop {
            tokio::select! {
                biased;
                stopped = stopping.wait_for(|stopping| *stopping), if !self.stop.is_stopping() => {
                    if stopped.is_ok() {
                        self.stop.stop();
                    }
                }
                changed = gateways.changed() => {
                    // The next request takes the new gateway.
                    self.current.take();
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Returns the stop signal of this worker.
    pub(crate) fn stop_signal(&self) -> Rc<StopSignal> {
        Rc::clone(&self.stop)
    }

    /// Returns a handle to this worker, for a task that outlives the request that starts it.
    pub(super) fn handle(&self) -> Option<Rc<Self>> {
        self.own.upgrade()
    }

    /// Returns the gateway in use; `None` while the process starts.
    pub(super) fn gateway_now(&self) -> Option<Rc<CurrentGateway>> {
        let (mut current, mut gateway) = (self.current.borrow_mut(), self.gateway.borrow_mut());
        if current.is_none() || gateway.has_changed().unwrap_or(false) {
            let gateway = gateway.borrow_and_update();
            *current = gateway.as_ref().map(CurrentGateway::new);
        }
        current.clone()
    }

    /// Returns the gateway in use. Waits for it while the process starts.
    pub async fn gateway(&self) -> Rc<CurrentGateway> {
        loop {
            if let Some(gateway) = self.gateway_now() {
                return gateway;
            }
            // Boxed: only the very first clients wait here.
            Box::pin(self.started()).await;
        }
    }

    /// Waits until the process has started.
    async fn started(&self) {
        let mut gateway = self.gateway.borrow().clone();
        if gateway.wait_for(Option::is_some).await.is_err() {
            // The process failed to start and is ending.
            std::future::pending::<()>().await;
        }
    }
}
