use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::error::OriginError;
use super::slots::{Slot, Slots};
use crate::config::{self, ServerUrl};
use crate::events::Throttle;
use crate::limit::Moment;
use crate::metrics::{Outcome, ServerMetrics};

/// An origin's servers, and how they are doing: shared by all workers, and handed on at a reload.
#[derive(Debug)]
pub struct Origin {
    settings: config::Origin,
    servers: Vec<Arc<Server>>,
    /// `None`: as many as there are.
    slots: Option<Arc<Slots>>,
    /// Log events of requests that got no answer.
    unanswered: Throttle,
}

#[derive(Debug)]
struct Server {
    url: ServerUrl,
    in_flight: AtomicUsize,
    /// Failures since the last answer.
    failures: AtomicU32,
    /// The moment, in nanoseconds, until which it is not asked; zero while it is in.
    out_until: AtomicU64,
    metrics: ServerMetrics,
}

/// A request at one of the servers, counted until this is dropped.
#[derive(Debug)]
pub struct InFlight {
    server: Arc<Server>,
    /// How many failures in a row take the server out, and for how long.
    max_fails: Option<(u32, Duration)>,
    slot: Option<Slot>,
}

impl Origin {
    /// The servers of `settings`, all of them in.
    #[must_use]
    pub fn new(settings: config::Origin) -> Self {
        let servers = settings
            .servers
            .iter()
            .map(|url| Arc::new(Server::new(&settings.name, url)))
            .collect();
        let slots = settings
            .max_in_flight
            .map(|most| Arc::new(Slots::new(most.get())));
        Self {
            settings,
            servers,
            slots,
            unanswered: Throttle::default(),
        }
    }

    /// The same origin under new settings: what is known of the servers that stay, stays, and requests at the origin keep
    /// their places.
    #[must_use]
    pub fn reload(&self, settings: config::Origin) -> Self {
        let server = |url: &ServerUrl| {
            let known = self.servers.iter().find(|server| server.url == *url);
            known.map_or_else(|| Arc::new(Server::new(&settings.name, url)), Arc::clone)
        };
        let servers = settings.servers.iter().map(server).collect();
        let slots = match (
            &self.slots,
            self.settings.max_in_flight,
            settings.max_in_flight,
        ) {
            (Some(slots), Some(from), Some(to)) => {
                slots.resize(from.get(), to.get());
                Some(Arc::clone(slots))
            }
            (_, _, to) => to.map(|most| Arc::new(Slots::new(most.get()))),
        };
        Self {
            settings,
            servers,
            slots,
            unanswered: Throttle::default(),
        }
    }

    /// Tells the log of a request that got no answer, at most once a second.
    pub(super) fn tell_unanswered(&self, error: &OriginError, now: Moment) {
        if let Some(hidden) = self.unanswered.show(now) {
            tracing::warn!(origin = self.settings.name, %error, hidden, "a request got no answer");
        }
    }

    /// Takes a place at the origin, and picks the server.
    ///
    /// # Errors
    ///
    /// Where no place came free within `queue_timeout`, or no server is in.
    pub(super) async fn admit(&self, now: Moment) -> Result<InFlight, OriginError> {
        let slot = match &self.slots {
            None => None,
            Some(slots) => {
                let limit = self.settings.queue_timeout;
                let full = |_| OriginError::Full {
                    origin: self.settings.name.clone(),
                    limit,
                };
                tokio::time::timeout(limit, slots.take())
                    .await
                    .map_err(full)?
            }
        };
        let mut admitted = self.pick(None, now)?;
        admitted.slot = slot;
        Ok(admitted)
    }

    /// Moves on to another server than the one that `tried` is at; the place at the origin is kept.
    ///
    /// # Errors
    ///
    /// Where no other server is in.
    pub(super) fn another(&self, tried: &mut InFlight, now: Moment) -> Result<(), OriginError> {
        let mut other = self.pick(Some(tried), now)?;
        other.slot = tried.slot.take();
        *tried = other;
        Ok(())
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &config::Origin {
        &self.settings
    }

    /// The server with the least in flight of those that are in and not `tried` yet; of equals the first in the file.
    /// A single server is always in.
    ///
    /// # Errors
    ///
    /// Where no server is left: when the first of those that are out is asked again.
    fn pick(&self, tried: Option<&InFlight>, now: Moment) -> Result<InFlight, OriginError> {
        let alone = self.servers.len() == 1;
        let untried =
            |server: &&Arc<Server>| tried.is_none_or(|tried| !Arc::ptr_eq(&tried.server, server));
        let candidates = self
            .servers
            .iter()
            .filter(untried)
            .filter(|server| alone || server.is_in(now));
        let least = candidates.min_by_key(|server| server.in_flight.load(Ordering::Relaxed));
        let Some(server) = least else {
            let back = self
                .servers
                .iter()
                .map(|server| server.out_until())
                .min()
                .unwrap_or(now);
            return Err(OriginError::AllOut {
                origin: self.settings.name.clone(),
                retry_after: back.since(now),
            });
        };
        server.in_flight.fetch_add(1, Ordering::Relaxed);
        server.metrics.in_flight.increment(1.0);
        let max_fails = (!alone).then_some((self.settings.max_fails, self.settings.fail_timeout));
        Ok(InFlight {
            server: Arc::clone(server),
            max_fails,
            slot: None,
        })
    }
}

impl Server {
    fn new(origin: &str, url: &ServerUrl) -> Self {
        let metrics = ServerMetrics::of(origin, &url.to_string());
        metrics.healthy.set(1.0);
        Self {
            url: url.clone(),
            in_flight: AtomicUsize::new(0),
            failures: AtomicU32::new(0),
            out_until: AtomicU64::new(0),
            metrics,
        }
    }

    fn out_until(&self) -> Moment {
        Moment::from_nanos(self.out_until.load(Ordering::Relaxed))
    }

    fn is_in(&self, now: Moment) -> bool {
        self.out_until() <= now
    }
}

impl InFlight {
    /// Where the request is.
    #[must_use]
    pub fn server(&self) -> &ServerUrl {
        &self.server.url
    }

    /// The head of an answer came after `took`.
    pub(super) fn answered(&self, took: Duration) {
        let Server {
            failures,
            out_until,
            metrics,
            ..
        } = &*self.server;
        metrics.count(Outcome::Answered, took);
        // Loads are cheap and shared; stores are not, and after most answers there is nothing to change.
        if failures.load(Ordering::Relaxed) > 0 {
            failures.store(0, Ordering::Relaxed);
        }
        if out_until.load(Ordering::Relaxed) > 0 {
            out_until.store(0, Ordering::Relaxed);
            metrics.healthy.set(1.0);
            tracing::info!(server = %self.server.url, "the server answers again");
        }
    }

    /// No answer came, for all of `took`. After `max_fails` of these in a row the server is out for `fail_timeout`;
    /// from then on each further failure takes it out again, until it answers.
    pub(super) fn failed(&self, outcome: Outcome, took: Duration, now: Moment) {
        let Server {
            failures,
            out_until,
            metrics,
            url,
            ..
        } = &*self.server;
        metrics.count(outcome, took);
        let in_a_row = failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let Some((max_fails, fail_timeout)) = self.max_fails else {
            return;
        };
        if in_a_row >= max_fails {
            out_until.store((now + fail_timeout).as_nanos(), Ordering::Relaxed);
            metrics.healthy.set(0.0);
            tracing::warn!(server = %url, in_a_row, ?fail_timeout, "the server is taken out");
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.server.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.server.metrics.in_flight.decrement(1.0);
    }
}
