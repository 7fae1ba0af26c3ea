use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::condition::Condition;
use super::slots::Slot;
use crate::config::{Health, ServerUrl};
use crate::limit::Moment;
use crate::metrics::{Outcome, ServerMetrics};

/// One server of an origin, as long as it is in the file: reloads hand it on.
#[derive(Debug)]
pub(crate) struct Server {
    url: Arc<ServerUrl>,
    in_flight: AtomicUsize,
    condition: Condition,
    metrics: ServerMetrics,
    /// Asked for by each request, for which the lock of a channel would be too much.
    is_retired: AtomicBool,
    retirement: watch::Sender<()>,
}

/// A request at one of the servers, counted until this is dropped.
#[derive(Debug)]
pub struct InFlight {
    server: Arc<Server>,
    /// How many failures in a row take the server out, and for how long.
    max_fails: Option<(u32, Duration)>,
    slot: Option<Slot>,
}

impl Server {
    pub(super) fn new(origin: &str, url: &ServerUrl) -> Self {
        let metrics = ServerMetrics::of(origin, &url.to_string());
        Self {
            url: Arc::new(url.clone()),
            in_flight: AtomicUsize::new(0),
            condition: Condition::new(metrics.healthy.clone()),
            metrics,
            is_retired: AtomicBool::new(false),
            retirement: watch::Sender::new(()),
        }
    }

    pub(super) fn url(&self) -> &ServerUrl {
        &self.url
    }

    pub(super) fn metrics(&self) -> &ServerMetrics {
        &self.metrics
    }

    /// Tells Prometheus of what was counted.
    pub(super) fn show_metrics(&self) {
        self.metrics.show(self.in_flight());
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Whether it is asked; `alone`: the origin has no other.
    pub(super) fn is_in(&self, alone: bool, now: Moment) -> bool {
        self.condition.passes_checks() && (alone || self.out_for(now).is_zero())
    }

    /// How long until it may be asked again; `check`: between two of its checks.
    pub(super) fn back_in(&self, check: Duration, now: Moment) -> Duration {
        if self.condition.passes_checks() {
            self.out_for(now)
        } else {
            self.out_for(now).max(check)
        }
    }

    /// For how long requests that failed still keep it out.
    fn out_for(&self, now: Moment) -> Duration {
        self.condition.out_until().since(now)
    }

    /// A health check came out well, or it did not: why.
    pub(super) fn checked(&self, found: Result<(), String>, health: &Health) {
        self.condition.checked(&self.url, found, health);
    }

    /// From now on nobody checks it.
    pub(super) fn unchecked(&self) {
        self.condition.unchecked();
    }

    /// It left the file.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
        self.retirement.send_replace(());
    }

    pub(super) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }

    /// Waits until it leaves the file.
    pub(super) fn retirement(&self) -> impl Future<Output = ()> + use<> {
        let mut retirement = self.retirement.subscribe();
        let is_retired = self.is_retired();
        async move {
            if !is_retired {
                // Where all who knew it are gone, it has left too.
                let _gone = retirement.changed().await;
            }
        }
    }
}

impl InFlight {
    pub(super) fn new(server: &Arc<Server>, max_fails: Option<(u32, Duration)>) -> Self {
        server.in_flight.fetch_add(1, Ordering::Relaxed);
        Self {
            server: Arc::clone(server),
            max_fails,
            slot: None,
        }
    }

    pub(super) fn with(self, slot: Option<Slot>) -> Self {
        let mut here = self;
        here.slot = slot;
        here
    }

    pub(super) fn take_slot(&mut self) -> Option<Slot> {
        self.slot.take()
    }

    /// Where the request is.
    #[must_use]
    pub fn server(&self) -> &Arc<ServerUrl> {
        &self.server.url
    }

    pub(crate) fn at(&self) -> &Arc<Server> {
        &self.server
    }

    pub(super) fn is_at(&self, server: &Arc<Server>) -> bool {
        Arc::ptr_eq(&self.server, server)
    }

    /// The head of an answer came after `took`.
    pub fn answered(&self, took: Duration) {
        self.server.metrics.count(Outcome::Answered, took);
        self.server.condition.answered(&self.server.url);
    }

    /// No answer came, for all of `took`. After `max_fails` of these in a row the server is out for
    /// `fail_timeout`; from then on each further failure takes it out again, until it answers.
    pub fn failed(&self, outcome: Outcome, took: Duration, now: Moment) {
        let Server {
            condition,
            metrics,
            url,
            ..
        } = &*self.server;
        metrics.count(outcome, took);
        condition.failed(url, self.max_fails, now);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.server.in_flight.fetch_sub(1, Ordering::Relaxed);
        if self.server.is_retired() {
            // Nobody else shows its metrics any more.
            self.server.show_metrics();
        }
    }
}
