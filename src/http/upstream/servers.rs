use std::sync::Arc;
use std::time::Duration;

use super::dial::Dialer;
use super::error::OriginError;
use super::probe::Check;
use super::server::{InFlight, Server};
use super::slots::Slots;
use crate::config::{self, ServerUrl};
use crate::events::Throttle;
use crate::limit::Moment;

/// An origin's servers, and how they are doing: shared by all workers, and handed on at a reload.
#[derive(Debug)]
pub struct Origin {
    settings: config::Origin,
    servers: Vec<Arc<Server>>,
    dialer: Dialer,
    /// `None`: as many as there are.
    slots: Option<Arc<Slots>>,
    /// Log events of requests that got no answer.
    unanswered: Throttle,
}

/// How a server is doing.
#[derive(Debug)]
pub struct ServerState<'o> {
    /// As the file has it.
    pub url: &'o ServerUrl,
    /// Whether it is asked.
    pub healthy: bool,
    /// Requests at it.
    pub in_flight: usize,
    /// Requests that it answered.
    pub answered: u64,
    /// Requests that it did not answer.
    pub failed: u64,
}

impl Origin {
    /// The servers of `settings`, all of them in; connections to them are opened by `dialer`.
    #[must_use]
    pub fn new(settings: config::Origin, dialer: Dialer) -> Self {
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
            dialer,
            slots,
            unanswered: Throttle::default(),
        }
    }

    /// The same origin under new settings: what is known of the servers that stay, stays, and
    /// requests at the origin keep their places.
    #[must_use]
    pub fn reload(&self, settings: config::Origin) -> Self {
        let server = |url: &ServerUrl| {
            let known = self.servers.iter().find(|server| server.url() == url);
            known.map_or_else(|| Arc::new(Server::new(&settings.name, url)), Arc::clone)
        };
        let servers: Vec<_> = settings.servers.iter().map(server).collect();
        for server in &self.servers {
            if !settings.servers.contains(server.url()) {
                server.retire();
            } else if settings.health.is_none() {
                server.unchecked();
            }
        }
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
            dialer: self.dialer.clone(),
            slots,
            unanswered: Throttle::default(),
        }
    }

    /// It left the file: connections to its servers are not kept any more.
    pub fn retire(&self) {
        for server in &self.servers {
            server.retire();
        }
    }

    /// Whether any server is asked.
    #[must_use]
    pub fn has_server_in(&self, now: Moment) -> bool {
        let alone = self.is_alone();
        self.servers.iter().any(|server| server.is_in(alone, now))
    }

    /// How its servers are doing, in the order of the file.
    pub fn servers(&self, now: Moment) -> impl Iterator<Item = ServerState<'_>> {
        let alone = self.is_alone();
        self.servers.iter().map(move |server| ServerState {
            url: server.url(),
            healthy: server.is_in(alone, now),
            in_flight: server.in_flight(),
            answered: server.metrics().answered(),
            failed: server.metrics().failed(),
        })
    }

    /// Tells Prometheus of what was counted.
    pub fn show_metrics(&self) {
        for server in &self.servers {
            server.show_metrics();
        }
    }

    /// What is to be checked of its servers, if anything.
    pub(super) fn checks(&self) -> impl Iterator<Item = Check> {
        let health = self.settings.health.iter();
        let checks = health.flat_map(|health| self.servers.iter().map(move |it| (it, health)));
        checks.map(|(server, health)| Check::new(server, health, &self.settings.host, &self.dialer))
    }

    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    fn is_alone(&self) -> bool {
        self.servers.len() == 1
    }

    /// Tells the log of a request that got no answer; as a warning at most once a second.
    pub fn tell_unanswered(&self, error: &OriginError, now: Moment) {
        let origin = &self.settings.name;
        if let Some(hidden) = self.unanswered.show(now) {
            tracing::warn!(origin, %error, hidden, "a request got no answer");
        } else {
            tracing::debug!(origin, %error, "a request got no answer");
        }
    }

    /// Takes a place at the origin, and picks the server.
    ///
    /// # Errors
    ///
    /// Where no place came free within `queue_timeout`, or no server is in.
    pub async fn admit(&self, now: Moment) -> Result<InFlight, OriginError> {
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
        Ok(self.pick(None, now)?.with(slot))
    }

    /// Moves on to another server than the one that `tried` is at; the place at the origin is kept.
    ///
    /// # Errors
    ///
    /// Where no other server is in.
    pub fn another(&self, tried: &mut InFlight, now: Moment) -> Result<(), OriginError> {
        let other = self.pick(Some(tried), now)?;
        *tried = other.with(tried.take_slot());
        Ok(())
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &config::Origin {
        &self.settings
    }

    /// The server with the least in flight of those that are in and not `tried` yet; of equals the
    /// first in the file.
    ///
    /// # Errors
    ///
    /// Where no server is left: when the first of those that are out is asked again.
    pub fn pick(&self, tried: Option<&InFlight>, now: Moment) -> Result<InFlight, OriginError> {
        let alone = self.is_alone();
        let untried = |server: &&Arc<Server>| tried.is_none_or(|tried| !tried.is_at(server));
        let candidates = self
            .servers
            .iter()
            .filter(untried)
            .filter(|server| server.is_in(alone, now));
        let Some(server) = candidates.min_by_key(|server| server.in_flight()) else {
            // A server that fails its checks is in with one of the next at the earliest.
            let check = self.settings.health.as_ref();
            let check = check.map_or(Duration::ZERO, |health| health.interval);
            let back = self.servers.iter().map(|server| server.back_in(check, now));
            return Err(OriginError::AllOut {
                origin: self.settings.name.clone(),
                retry_after: back.min().unwrap_or_default(),
            });
        };
        // A single server is always tried, whatever became of the requests before.
        let max_fails = (!alone).then_some((self.settings.max_fails, self.settings.fail_timeout));
        Ok(InFlight::new(server, max_fails))
    }
}
