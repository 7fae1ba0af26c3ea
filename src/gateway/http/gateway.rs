//! The gateway in use: its routes, and the zones and origins that they name.
//!
//! A *zone* limits the rate of each key. The *gate* of an origin limits all requests to it; a
//! *class* is a group of requests there. A *waiting room* lets visitors of an origin wait. With
//! *collapse*, requests share answers. `reload` builds the next version.

mod counting;
mod learned_costs;
mod maintenance;
mod reload;

use std::sync::{Arc, Mutex, OnceLock};

use actix_rt::ArbiterHandle;
use config::{Route, RouteIndex, Settings};
use futures_util::future::join_all;
use limit::Moment;
use tokio::sync::watch;

use crate::collapse::SharedAnswers;
use crate::gate::OriginGate;
use crate::http::message::BodyMemory;
use crate::observe::access::AccessLog;
use crate::observe::metrics::{
    CollapseMetrics, Count, MAX_NAMED_ROUTES, NO_ROUTE, OTHER_ROUTES, Registry, RouteMetrics,
};
use crate::observe::spans::Spans;
use crate::origin::{Dialer, Origin};
use crate::room::OriginRoom;
use crate::time::clock;
use crate::zone::{StoreHealth, Zone};
use learned_costs::LearnedCosts;

pub use learned_costs::SavedCost;
pub use learned_costs::{MethodCost, RouteCosts};
pub use maintenance::{Maintenance, MaintenanceTarget, Maintenances};
pub use reload::Addresses;

/// One version of the gateway. A reload creates the next version, which keeps unchanged zones.
pub struct Gateway {
    settings: Settings,
    origins: Vec<Origin>,
    /// Waiting rooms, by the origin's index.
    rooms: Vec<Option<Arc<OriginRoom>>>,
    /// Metrics of collapsing, by the origin's index; `None` if no route to the origin collapses.
    collapses: Vec<Option<Arc<CollapseMetrics>>>,
    zones: Vec<Arc<Zone>>,
    /// Smallest burst of a zone's limits with a queue, by the zone's index; `None` without one.
    least_bursts: Vec<Option<u32>>,
    /// Zones that were removed from the file while they had waiters.
    retired: Vec<Arc<Zone>>,
    /// Gates that were in use when their origin was removed from the file.
    ///
    /// If an origin of the same name returns to the file, it gets this gate.
    retired_gates: Vec<RetiredGate>,
    route_index: RouteIndex,
    /// Metrics by the route's index. All routes after the first [`MAX_NAMED_ROUTES`] share one.
    routes: Vec<Arc<RouteMetrics>>,
    /// Metrics of requests that matched no route.
    no_route: Arc<RouteMetrics>,
    /// Names of the gates' classes with their counts, by the origin's index.
    classes: Vec<Vec<(Box<str>, Arc<Count>)>>,
    learned_costs: LearnedCosts,
    access: Option<AccessLog>,
    /// Health of the store of shared zones and origins.
    store_health: Option<Arc<StoreHealth>>,
    /// Maintenances, already applied to the routes of `settings`.
    maintenances: Maintenances,
    /// State that all versions share.
    lifecycle: Arc<Lifecycle>,
}

/// Name of an origin that was removed from the file, and its gate.
type RetiredGate = (String, Arc<OriginGate>);

/// State that all versions of the gateway share.
#[derive(Default)]
struct Lifecycle {
    route_metrics: Registry<RouteMetrics>,
    collapse_metrics: Registry<CollapseMetrics>,
    stopping: watch::Sender<bool>,
    dialer: Dialer,
    /// `None` until a route collapses.
    shared_answers: OnceLock<Arc<SharedAnswers>>,
    /// Memory for bodies that are buffered for a slow peer.
    body_memory: Arc<BodyMemory>,
    /// Addresses of the names that are resolved to servers.
    addresses: Mutex<Addresses>,
    /// `None` without a collector. Changing the collector requires a restart.
    spans: Option<Spans>,
}

impl Lifecycle {
    /// Returns the metrics of a route. They are kept across reloads.
    fn metrics_of(&self, route: &str) -> Arc<RouteMetrics> {
        self.route_metrics.get(route, RouteMetrics::default)
    }
}

/// Returns the metrics of collapsing, by the origin's index. `None`: no route to it collapses.
fn collapses(
    settings: &Settings,
    known: &Registry<CollapseMetrics>,
) -> Vec<Option<Arc<CollapseMetrics>>> {
    let collapses = |origin| {
        let mut routes = settings.routes.iter();
        routes.any(|route| route.collapse.is_some() && route.origin() == Some(origin))
    };
    let metrics = |(index, origin): (usize, &config::Origin)| {
        collapses(index).then(|| known.get(&origin.name, CollapseMetrics::default))
    };
    settings.origins.iter().enumerate().map(metrics).collect()
}

impl Gateway {
    /// Starts the gateway, with its zones on `workers`. `since`: instant of the file's last change.
    pub fn start(
        settings: Settings,
        workers: &[ArbiterHandle],
        access: Option<AccessLog>,
        since: Moment,
    ) -> Self {
        let lifecycle = Lifecycle {
            spans: Spans::start(&settings),
            ..Lifecycle::default()
        };
        // The first version follows one without routes, zones and origins, as after a reload.
        let empty = Settings {
            origins: Vec::new(),
            zones: Vec::new(),
            routes: Vec::new(),
            ..settings.clone()
        };
        Self::new(empty, Arc::new(lifecycle)).next(settings, workers, access, since)
    }

    /// Connects gates and rooms to the store, where configured. `since`: instant of the new rates.
    fn share_gates(&self, workers: &[ArbiterHandle], since: Moment) {
        let store = self.store_health.as_ref();
        let gated = self.origins.iter().filter_map(|it| Some((it, it.gate()?)));
        for (index, (origin, gate)) in gated.enumerate() {
            // The gates take turns on the workers. There is no worker in some tests.
            let worker = workers.get(index % workers.len().max(1));
            gate.share(origin.settings(), store, worker, since);
        }
        for (room, worker) in self.rooms().zip(workers.iter().cycle()) {
            room.share(worker);
        }
    }

    /// Creates a version that has its routes and their metrics, but no zones and no origins yet.
    fn new(settings: Settings, lifecycle: Arc<Lifecycle>) -> Self {
        let server = &settings.server;
        lifecycle.dialer.set_keepalive(server.tcp_keepalive);
        lifecycle.body_memory.set_limit(server.buffers.get());
        let named = settings.routes.iter().take(MAX_NAMED_ROUTES);
        let named = named.map(|route| lifecycle.metrics_of(&route.name()));
        let mut routes: Vec<_> = named.collect();
        if settings.routes.len() > routes.len() {
            routes.resize(settings.routes.len(), lifecycle.metrics_of(OTHER_ROUTES));
        }
        let collapses = collapses(&settings, &lifecycle.collapse_metrics);
        if collapses.iter().any(Option::is_some) {
            let limit = usize::try_from(server.shared_answers.get()).unwrap_or(usize::MAX);
            let shared = &lifecycle.shared_answers;
            let shared = shared.get_or_init(|| SharedAnswers::new(limit));
            shared.set_limit(limit);
        } else if let Some(shared) = lifecycle.shared_answers.get() {
            shared.retire();
        }
        Self {
            collapses,
            route_index: RouteIndex::new(&settings.routes),
            least_bursts: settings.least_bursts(),
            settings,
            routes,
            no_route: lifecycle.metrics_of(NO_ROUTE),
            lifecycle,
            origins: Vec::new(),
            rooms: Vec::new(),
            zones: Vec::new(),
            retired: Vec::new(),
            retired_gates: Vec::new(),
            classes: Vec::new(),
            learned_costs: LearnedCosts::new(),
            access: None,
            store_health: None,
            maintenances: Maintenances::default(),
        }
    }

    /// Returns the health of the store that zones and origins share; `None` if none is shared.
    pub(crate) fn store_health(&self) -> Option<&StoreHealth> {
        self.store_health.as_deref()
    }

    /// Returns the settings in use.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the first route that matches a request, and the index of the route.
    ///
    /// `meets` checks the other conditions of a route. See [`RouteIndex::find`].
    pub fn route(
        &self,
        path: &[u8],
        host: &str,
        method: &[u8],
        meets: impl Fn(&Route) -> bool,
    ) -> Option<(usize, &Route)> {
        let (index, routes) = (&self.route_index, &self.settings.routes);
        let index = index.find(routes, path, Some(host), Some(method), meets)?;
        Some((index, &routes[index]))
    }

    /// Returns a zone by its index.
    pub fn zone(&self, index: usize) -> &Arc<Zone> {
        &self.zones[index]
    }

    /// Returns the smallest `burst` of the limits with a queue in a zone; `None` without a queue.
    pub(crate) fn least_burst(&self, zone: usize) -> Option<u32> {
        self.least_bursts.get(zone).copied().flatten()
    }

    /// Returns all zones, in the order of the file.
    pub fn zones(&self) -> &[Arc<Zone>] {
        &self.zones
    }

    /// Returns the zones of the file, and removed zones that still run. All may have waiters.
    pub fn zones_in_use(&self) -> impl Iterator<Item = &Arc<Zone>> {
        let retired = self.retired.iter().filter(|zone| !zone.has_ended());
        self.zones.iter().chain(retired)
    }

    /// Returns the sender of spans of sampled requests, if there is a collector.
    pub fn spans(&self) -> Option<&Spans> {
        self.lifecycle.spans.as_ref()
    }

    /// Returns an origin by its index.
    pub fn origin(&self, index: usize) -> &Origin {
        &self.origins[index]
    }

    /// Returns the waiting room of an origin by its index, if it has one.
    pub fn room(&self, origin: usize) -> Option<&Arc<OriginRoom>> {
        self.rooms.get(origin)?.as_ref()
    }

    /// Returns the metrics of collapsing of an origin, if one of its routes collapses.
    pub(crate) fn collapse_metrics(&self, origin: usize) -> Option<&CollapseMetrics> {
        self.collapses.get(origin)?.as_deref()
    }

    /// Returns the shared answers, if any route collapses now.
    pub(crate) fn used_shared_answers(&self) -> Option<&Arc<SharedAnswers>> {
        let is_used = self.collapses.iter().any(Option::is_some);
        self.shared_answers().filter(|_| is_used)
    }

    /// Returns the shared answers, if any route collapses now or did so before.
    pub(crate) fn shared_answers(&self) -> Option<&Arc<SharedAnswers>> {
        self.lifecycle.shared_answers.get()
    }

    /// Returns the memory for bodies that are buffered for a slow peer.
    pub(crate) fn body_memory(&self) -> &Arc<BodyMemory> {
        &self.lifecycle.body_memory
    }

    /// Returns whether any origin has a buffer for bodies.
    pub(crate) fn buffers_bodies(&self) -> bool {
        let mut origins = self.settings.origins.iter();
        origins.any(|it| it.request_buffer.is_some() || it.response_buffer.is_some())
    }

    /// Returns all waiting rooms.
    pub fn rooms(&self) -> impl Iterator<Item = &Arc<OriginRoom>> {
        self.rooms.iter().flatten()
    }

    /// Returns all origins.
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// Returns the routes that lead to an origin, each with the origin's index.
    fn forwarding_routes(&self) -> impl Iterator<Item = (&Route, usize)> {
        let routes = self.settings.routes.iter();
        routes.filter_map(|route| Some((route, route.origin()?)))
    }

    /// Returns whether any route can forward: its origin has an available server.
    ///
    /// Also returns true if no route forwards.
    pub fn has_origin(&self) -> bool {
        let now = clock::now();
        let mut routes = self.forwarding_routes();
        self.forwarding_routes().next().is_none()
            || routes.any(|(_, origin)| self.origins[origin].has_server_in(now))
    }

    /// Returns whether clients are served during an outage: they wait, or get a stale response.
    pub(crate) fn bridges_outages(&self) -> bool {
        let lets_wait = self.forwarding_routes().any(|(route, origin)| {
            let origin = &self.settings.origins[origin];
            let may_wait = route.dry_run || !route.max_wait.is_some_and(|it| it.is_zero());
            origin.holds() && may_wait || origin.room.is_some() && route.room
        });
        let routes = self.settings.routes.iter();
        let mut collapses = routes.filter_map(|it| it.collapse.as_ref());
        let serves_stale = collapses.any(|it| !it.stale.is_zero());
        let has_answer = |shared: &Arc<SharedAnswers>| shared.may_serve(clock::now());
        lets_wait || serves_stale && self.shared_answers().is_some_and(has_answer)
    }

    /// Returns the access log, if there is one.
    pub(crate) fn access_log(&self) -> Option<&AccessLog> {
        self.access.as_ref()
    }

    /// Begins to stop: from now on each connection ends after its current response.
    pub fn stop(&self) {
        self.lifecycle.stopping.send_replace(true);
    }

    /// Returns whether the gateway is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.lifecycle.stopping.borrow()
    }

    /// Returns a receiver that reports the stop, across all versions of the gateway.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.lifecycle.stopping.subscribe()
    }

    /// Gives the leases of all zones and gates back to Redis, before the process ends.
    pub async fn give_back_leases(&self) {
        let zones = self.zones.iter().chain(&self.retired);
        let zones_done = join_all(zones.map(|zone| zone.give_back_leases()));
        let gates = self.origins.iter().filter_map(Origin::gate);
        let gates_done = join_all(gates.map(|gate| gate.give_back_permits()));
        tokio::join!(zones_done, gates_done);
    }

    /// Rejects all waiters and all later requests.
    pub fn reject_all(&self) {
        for zone in self.zones.iter().chain(&self.retired) {
            zone.reject_all();
        }
        let gates = self.origins.iter().filter_map(Origin::gate);
        for gate in gates.chain(self.retired_gates.iter().map(|(_, gate)| gate)) {
            gate.close();
        }
    }
}
