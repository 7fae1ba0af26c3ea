//! [`Origin`]: the servers of an origin with their state and their gate. Reloads keep the state.
//!
//! `pick` chooses a server for a request. `outage` handles the time while no server can be reached.

mod pick;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use config::{self, HostRule, OriginServer};
use limit::Moment;

use super::dial::Dialer;
use super::error::OriginError;
use super::failures::Failures;
use super::group::Group;
use super::health_check::Check;
use super::server::Server;
use crate::gate::{OriginGate, ServerLimit};
use crate::observe::metrics::{AtomicHistogram, Counts, GateMetrics};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Servers of an origin and their state, shared by all workers and kept across reloads.
pub struct Origin {
    pub(super) settings: config::Origin,
    pub(super) servers: Vec<Arc<Server>>,
    /// Index of the server after the last picked one. It is preferred among equals.
    next: AtomicUsize,
    /// Choice by weight, limit or hash; `None`: the file gives only URLs.
    group: Option<Arc<Group>>,
    pub(super) failures: Failures,
    pub(super) dialer: Dialer,
    /// Gate of the origin; `None` if the file limits neither its rate nor its requests in flight.
    pub(super) gate: Option<Arc<OriginGate>>,
    /// Metrics of the gate. They outlive it, because a later file may give the origin one again.
    gate_metrics: Arc<GateMetrics>,
    /// Version of the gate's settings when this was created: [`OriginGate::version`].
    pub(super) version: u64,
    /// Limits the log events for requests that got no response.
    unanswered: Throttle,
    /// Times at a server of requests whose clients disconnected before a response began.
    disconnects: Arc<AtomicHistogram>,
}

impl Origin {
    /// Creates the origin with the servers of `settings`, all of them in use.
    ///
    /// `former_gate`: gate of an origin of this name that has left the file, if it still has
    /// requests. `dialer` opens the connections.
    pub fn new(
        settings: config::Origin,
        former_gate: Option<&Arc<OriginGate>>,
        dialer: &Dialer,
    ) -> Self {
        let create = |it: &OriginServer| Arc::new(Server::new(&settings.name, &it.url));
        let servers = settings.servers.iter().map(create).collect();
        Self::with_servers(settings, servers, None, former_gate, dialer)
    }

    /// Returns the same origin under new settings.
    ///
    /// Servers that stay keep their state, and requests at the origin keep their permits. Waiters
    /// at the gate keep waiting under the new settings.
    pub fn reload(&self, settings: config::Origin) -> Self {
        let keep_or_create = |OriginServer { url, .. }: &OriginServer| {
            let known = self.servers.iter().find(|server| server.url() == url);
            known.cloned().unwrap_or_else(|| {
                let server = Server::new(&settings.name, url);
                server.health.note_return(clock::now());
                Arc::new(server)
            })
        };
        let servers: Vec<_> = settings.servers.iter().map(keep_or_create).collect();
        for server in &self.servers {
            if !settings.servers.iter().any(|it| it.url == *server.url()) {
                server.retire();
            } else if settings.health.is_none() {
                server.end_checks(clock::now());
            }
        }
        let gate = self.gate.as_ref();
        Self::with_servers(settings, servers, Some(self), gate, &self.dialer)
    }

    /// Creates an origin. `before`: the origin under the old settings. `gate`: its gate so far.
    fn with_servers(
        settings: config::Origin,
        servers: Vec<Arc<Server>>,
        before: Option<&Self>,
        gate: Option<&Arc<OriginGate>>,
        dialer: &Dialer,
    ) -> Self {
        let group = Group::new(&settings, &servers);
        let failures = Failures::new(&settings, &servers, before.map(|it| &it.failures));
        let limited = group.clone().filter(|_| settings.limits_servers());
        let server_limit =
            limited.map(|group| -> ServerLimit { Arc::new(move |now| group.server_limit(now)) });
        let metrics_before = before.map(|it| &it.gate_metrics);
        let metrics = gate.map(|gate| gate.metrics()).or(metrics_before);
        let gate_metrics = metrics.map(Arc::clone).unwrap_or_default();
        let gate = match gate {
            None => OriginGate::new(&settings, server_limit, Arc::clone(&gate_metrics)),
            Some(gate) => {
                let has_same_servers = before.is_some_and(|before| {
                    let known = before.servers.iter().map(Arc::as_ptr);
                    known.eq(servers.iter().map(Arc::as_ptr))
                });
                let keeps_outage = has_same_servers && settings.holds();
                gate.reload(&settings, server_limit, keeps_outage);
                settings.gate().map(|_| Arc::clone(gate))
            }
        };
        Self {
            servers,
            next: AtomicUsize::new(0),
            group,
            failures,
            dialer: dialer.with_tls(&settings.tls),
            version: gate.as_ref().map_or(0, |gate| gate.version()),
            gate,
            gate_metrics,
            unanswered: Throttle::default(),
            disconnects: before.map_or_else(Arc::default, |it| Arc::clone(&it.disconnects)),
            settings,
        }
    }

    /// Records that the origin has left the file.
    ///
    /// Its idle connections are closed.
    pub fn retire(&self) {
        for server in &self.servers {
            server.retire();
        }
        // An override makes no sense for an origin that is not in the file.
        if let Some(gate) = &self.gate {
            gate.set_override(None);
        }
    }

    /// Returns the gate, if the origin has one.
    pub fn gate(&self) -> Option<&Arc<OriginGate>> {
        self.gate.as_ref()
    }

    /// Returns whether requests may be sent to any server.
    pub fn has_server_in(&self, now: Moment) -> bool {
        self.servers.iter().any(|server| server.is_in(now))
    }

    /// Returns the servers, in the order of the file.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().map(|server| &**server)
    }

    /// Records the time at a server of a request whose client disconnected before a response began.
    pub fn record_disconnect(&self, span: Duration) {
        self.disconnects.record(span);
    }

    /// Returns the times recorded by [`record_disconnect`](Self::record_disconnect).
    pub fn disconnects(&self) -> Counts {
        self.disconnects.counts()
    }

    /// Returns the health checks of the servers; none if the file has no `health`.
    pub(super) fn health_checks(&self) -> impl Iterator<Item = Check> {
        let health = self.settings.health.iter();
        let checks = health.flat_map(|health| self.servers.iter().map(move |it| (it, health)));
        let (host, http2) = (&self.settings.host, self.settings.http2);
        checks.map(move |(server, health)| Check {
            server: Arc::clone(server),
            health: health.clone(),
            http2,
            host: match host {
                // A check has no client whose `Host` could be preserved.
                HostRule::Preserve | HostRule::Origin => server.url().authority(),
                HostRule::Literal(name) => name.clone(),
            },
            dialer: self.dialer.clone(),
        })
    }

    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// Logs a request that got no response, as a warning at most once a second.
    pub fn log_unanswered(&self, error: &OriginError, now: Moment) {
        let origin = &self.settings.name;
        if let Some(hidden) = self.unanswered.show(now) {
            tracing::warn!(origin, %error, hidden, "a request got no answer");
        } else {
            tracing::debug!(origin, %error, "a request got no answer");
        }
    }

    /// Returns the effective settings.
    pub fn settings(&self) -> &config::Origin {
        &self.settings
    }
}
