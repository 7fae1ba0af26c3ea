mod pick;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use config::{self, OriginServer, ServerUrl};
use limit::Moment;

use super::dial::Dialer;
use super::error::OriginError;
use super::failures::Failures;
use super::group::Group;
use super::in_flight_table::InFlightTable;
use super::incidents::{Availability, Failure, LastCheck};
use super::probe::Check;
use super::recovery::Recovery;
use super::server::Server;
use crate::gate::{Begun, GateRejection, KeyAtGate, OriginGate, Place, Room, Waiting};
use crate::observe::metrics::{AtomicHistogram, Counts, ServerMetrics};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// The servers of an origin and their state, shared by all workers and kept across reloads.
pub struct Origin {
    settings: config::Origin,
    servers: Vec<Arc<Server>>,
    /// The server after the one that was picked last: the first among equals.
    next: AtomicUsize,
    /// How one is chosen where the file says more than their URLs; `None`: it does not.
    group: Option<Arc<Group>>,
    failures: Failures,
    dialer: Dialer,
    /// `None` if the file limits neither its rate nor its places.
    gate: Option<Arc<OriginGate>>,
    /// The gate's version of the settings, when these were made.
    version: u64,
    /// Limits the log events for requests that got no response.
    unanswered: Throttle,
    /// How long requests were at a server when their clients left before an answer began.
    lefts: Arc<AtomicHistogram>,
}

/// The state of a server.
pub struct ServerState<'o> {
    /// The URL as in the file.
    pub url: &'o ServerUrl,
    /// Whether it gets requests.
    pub availability: Availability,
    /// Whether it gets requests and answers. The only server of an origin gets them all the same.
    pub is_healthy: bool,
    /// Number of requests at it.
    pub in_flight: usize,
    /// What these requests wait for.
    pub requests: &'o InFlightTable,
    /// The last request that it did not answer.
    pub last_failure: Option<Failure>,
    /// When the certificate that it showed last expires, in Unix time; `None`: it has shown none.
    pub certificate_expires: Option<i64>,
    /// Its last health check; `None` without checks.
    pub last_check: Option<LastCheck>,
    /// What it answered, and what it did not.
    pub metrics: &'o ServerMetrics,
}

impl Origin {
    /// Creates the servers of `settings`, all of them in.
    ///
    /// `dialer` opens the connections to them.
    pub fn new(settings: config::Origin, dialer: &Dialer) -> Self {
        Self::behind(None, settings, dialer)
    }

    /// Returns an origin that had left the file and comes back, with the gate that it had.
    pub fn behind(
        known: Option<&Arc<OriginGate>>,
        settings: config::Origin,
        dialer: &Dialer,
    ) -> Self {
        let server = |it: &OriginServer| Arc::new(Server::new(&settings.name, &it.url));
        let servers = settings.servers.iter().map(server).collect();
        Self::of(settings, servers, None, known, false, dialer)
    }

    /// Returns the same origin under new settings.
    ///
    /// Servers that stay keep their state, and requests at the origin keep their places. Those that
    /// wait at the gate keep waiting under the new settings.
    pub fn reload(&self, settings: config::Origin) -> Self {
        let before = &self.servers;
        let server = |OriginServer { url, .. }: &OriginServer| {
            let known = before.iter().find(|server| server.url() == url);
            known.map_or_else(
                || {
                    let server = Server::new(&settings.name, url);
                    server.health.note_return(clock::now());
                    Arc::new(server)
                },
                Arc::clone,
            )
        };
        let servers: Vec<_> = settings.servers.iter().map(server).collect();
        for server in before {
            if !settings.servers.iter().any(|it| it.url == *server.url()) {
                server.retire();
            } else if settings.health.is_none() {
                server.unchecked(clock::now());
            }
        }
        let same = servers.len() == before.len();
        let mut pairs = servers.iter().zip(before);
        let has_same_servers = same && pairs.all(|(a, b)| Arc::ptr_eq(a, b));
        let keeps_outage = has_same_servers && settings.holds();
        let gate = self.gate.as_ref();
        Self::of(
            settings,
            servers,
            Some(self),
            gate,
            keeps_outage,
            &self.dialer,
        )
    }

    /// `before`: the same origin under the settings before. `gate`: the one that it goes on with.
    fn of(
        settings: config::Origin,
        servers: Vec<Arc<Server>>,
        before: Option<&Self>,
        gate: Option<&Arc<OriginGate>>,
        keeps_outage: bool,
        dialer: &Dialer,
    ) -> Self {
        let group = Group::of(&settings, &servers);
        let failures = Failures::of(&settings, &servers, before.map(|it| &it.failures));
        let room = room(group.as_ref(), &settings);
        let gate = match gate {
            None => OriginGate::of(&settings, room),
            Some(gate) => {
                gate.reload(&settings, room, keeps_outage);
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
            unanswered: Throttle::default(),
            lefts: before.map_or_else(Arc::default, |it| Arc::clone(&it.lefts)),
            settings,
        }
    }

    /// Notes that the origin has left the file.
    ///
    /// Idle connections to its servers are not kept any more.
    pub fn retire(&self) {
        for server in &self.servers {
            server.retire();
        }
        // What is not in the file has nothing to differ from.
        if let Some(gate) = &self.gate {
            gate.set_override(None);
        }
    }

    /// Returns its gate, if it has one.
    pub fn gate(&self) -> Option<&Arc<OriginGate>> {
        self.gate.as_ref()
    }

    /// Returns whether requests may be sent to any server.
    pub fn has_server_in(&self, now: Moment) -> bool {
        let alone = self.is_alone();
        self.servers.iter().any(|server| server.is_in(alone, now))
    }

    /// Returns the state of its servers, in the order of the file.
    pub fn servers(&self, now: Moment) -> impl Iterator<Item = ServerState<'_>> {
        let alone = self.is_alone();
        self.servers.iter().map(move |server| ServerState {
            url: server.url(),
            availability: server.availability(alone, now),
            is_healthy: server.health.is_healthy(alone, now),
            in_flight: server.in_flight.count(),
            requests: &server.in_flight,
            last_failure: server.last_failure(),
            certificate_expires: server.certificate_expires(),
            last_check: server.last_check(),
            metrics: &server.metrics,
        })
    }

    /// Returns the metrics of its servers, in the order of the file.
    pub fn metrics(&self) -> impl Iterator<Item = (&ServerUrl, &ServerMetrics)> {
        let servers = self.servers.iter();
        servers.map(|server| (server.url(), &server.metrics))
    }

    /// Records how long a request was at a server when its client left before an answer began.
    pub fn left_after(&self, span: Duration) {
        self.lefts.record(span);
    }

    /// How long requests were at a server when their clients left before an answer began.
    pub fn lefts(&self) -> Counts {
        self.lefts.counts()
    }

    /// Returns the health checks of its servers, if any.
    pub(super) fn checks(&self) -> impl Iterator<Item = Check> {
        let health = self.settings.health.iter();
        let checks = health.flat_map(|health| self.servers.iter().map(move |it| (it, health)));
        let (host, http2) = (&self.settings.host, self.settings.http2);
        checks.map(move |(server, health)| Check::new(server, health, host, http2, &self.dialer))
    }

    /// Notes that no server could be reached, and lets nothing through the gate until one can.
    ///
    /// # Errors
    ///
    /// Returns the error if requests do not wait for the origin because of it.
    pub fn begin_outage(&self, error: OriginError) -> Result<(), OriginError> {
        let Some(gate) = &self.gate else {
            return Err(error);
        };
        if !self.settings.holds() || !error.is_unreachable() {
            return Err(error);
        }
        if let Begun::New(outage) = gate.begin_outage(&self.settings.name, self.version, error)? {
            let recovery = Recovery {
                origin: self.settings.name.clone(),
                gate: Arc::clone(gate),
                outage,
                servers: self.servers.clone(),
                dialer: self.dialer.clone(),
                connect_timeout: self.settings.connect_timeout,
                http2: self.settings.http2,
                max_fails: self.failures.max_fails(),
            };
            actix_rt::spawn(recovery.run());
        }
        Ok(())
    }

    /// Lets a request that could not be sent wait in the gate's queue, ahead of all others.
    ///
    /// `key`: its key at the gate. `held_since`: when it first could not be sent. The gate may
    /// reject it.
    ///
    /// # Errors
    ///
    /// Returns the error if it cannot wait: it is not one of those that end by themselves, or
    /// `hold` is over, or `queue_timeout` if all servers are only full.
    pub fn hold(
        &self,
        place: Place,
        key: impl FnOnce() -> KeyAtGate,
        error: OriginError,
        held_since: Moment,
    ) -> Result<Result<Waiting, GateRejection>, OriginError> {
        let is_full = error.is_full();
        let most = if is_full {
            self.settings.queue_timeout
        } else {
            self.settings.hold
        };
        if clock::now() >= held_since + most {
            return Err(error);
        }
        if !is_full {
            self.begin_outage(error)?;
        }
        Ok(place.put_back(key(), held_since))
    }

    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    fn is_alone(&self) -> bool {
        self.servers.len() == 1
    }

    /// Logs a request that got no response, as a warning at most once a second.
    pub fn tell_unanswered(&self, error: &OriginError, now: Moment) {
        let origin = &self.settings.name;
        if let Some(hidden) = self.unanswered.show(now) {
            tracing::warn!(origin, %error, hidden, "a request got no answer");
        } else {
            tracing::debug!(origin, %error, "a request got no answer");
        }
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> &config::Origin {
        &self.settings
    }
}

/// What the servers of a gate's origin take, if the file limits any of them.
fn room(group: Option<&Arc<Group>>, settings: &config::Origin) -> Option<Room> {
    let group = Arc::clone(group.filter(|_| settings.limits_servers())?);
    Some(Room::new(move |now| group.room(now)))
}
