//! Handle of a zone, usable from any thread.
//!
//! `joins` joins and probes, `queries` reads the state of all supervisors, `handover` saves and
//! restores. The parameters that it sends to the supervisors are in `parameters`.

mod handover;
mod joins;
mod queries;

#[cfg(test)]
use std::rc::Rc;
use std::sync::Arc;

use actix_rt::ArbiterHandle;
use limit::Moment;
use tokio::sync::oneshot;

use super::join::{InFlightChange, Key, Waiters};
use super::overrides::Overrides;
use super::parameters::{PublishedParameters, ZoneParameters};
use super::restart::{self, PausedActors};
use super::shards::Shards;
use super::store_link::{Paces, RateDivergence, Sharing};
#[cfg(test)]
use super::supervisor::Crash;
use super::supervisor::{SupervisorActor, SupervisorAddress, SupervisorId, ZoneSupervisor};
use crate::observe::events::Events;
use crate::observe::metrics::{PlanMetrics, ZoneMetrics};
use crate::store::StoreHealth;
use crate::time::clock;
use crate::time::pacer::Pacer;

/// Handle of a zone's supervisors, usable from any thread.
///
/// Each reload creates a new version of it. All versions share the supervisors and `parameters`.
pub struct Zone {
    name: Arc<str>,
    settings: Arc<config::Zone>,
    shards: Arc<Shards>,
    /// Metrics of the plans, in the order of the file.
    plans: Box<[Arc<PlanMetrics>]>,
    parameters: Arc<ZoneParameters>,
}

impl Zone {
    /// Starts the zone's supervisors, one on each of `workers`.
    ///
    /// `since`: when the file got its present rates. A plan's file of keys may be newer.
    /// `store_health`: health of the store, if the zone is kept in one. `metrics`: new ones, or
    /// those of the zone of the same name that this one replaces.
    pub fn start(
        settings: config::Zone,
        workers: &[ArbiterHandle],
        since: Moment,
        store_health: Option<Arc<StoreHealth>>,
        metrics: Arc<ZoneMetrics>,
        events: Arc<Events>,
    ) -> Self {
        metrics.show_rate(settings.rate);
        let plans = settings.plans.iter();
        let plan_files = plans.filter_map(|plan| plan.file.as_deref());
        let plan_changes = plan_files.filter_map(clock::changed);
        let since = plan_changes.fold(since, Moment::max);
        let sharing = sharing(&settings, since, store_health, Arc::default());
        let parameters = PublishedParameters::new(settings, sharing);
        let (started, paused) = (clock::now(), PausedActors::default());
        let supervisors = workers.iter().enumerate().map(|(index, worker)| {
            let tuning = parameters.tuning(index, workers.len());
            let metrics = Arc::clone(&metrics);
            let id = SupervisorId::new();
            let actor = restart::start_on(worker, paused.clone(), move || {
                let supervisor = ZoneSupervisor::new(tuning, metrics, Pacer::here());
                SupervisorActor::new(id, supervisor)
            });
            SupervisorAddress::new(id, actor)
        });
        let supervisors = supervisors.collect();
        let shards = Shards::new(supervisors, metrics, events, paused, started);
        Self::new(parameters, shards)
    }

    /// Creates the handle of supervisors that have these parameters.
    fn new(parameters: PublishedParameters, shards: Shards) -> Self {
        let settings = Arc::clone(&parameters.settings);
        Self {
            name: settings.name.as_str().into(),
            plans: metrics_of_plans(&shards.metrics, &settings),
            settings,
            shards: Arc::new(shards),
            parameters: Arc::new(ZoneParameters::new(parameters)),
        }
    }

    /// Creates a zone with one supervisor, on this thread.
    #[cfg(test)]
    pub(super) fn on_this_thread(
        parameters: PublishedParameters,
        supervisor: SupervisorAddress,
    ) -> Self {
        let (metrics, paused) = (Arc::default(), PausedActors::default());
        let shards = Shards::new(
            [supervisor].into(),
            metrics,
            Arc::default(),
            paused,
            Moment::default(),
        );
        Self::new(parameters, shards)
    }

    /// Starts a zone with one supervisor, on this thread and on the clock of `pacer`.
    ///
    /// The other arguments are those of [`start`](Self::start).
    #[cfg(test)]
    pub(crate) fn start_here(
        settings: config::Zone,
        pacer: Rc<Pacer>,
        since: Moment,
        store_health: Option<Arc<StoreHealth>>,
    ) -> Self {
        let sharing = sharing(&settings, since, store_health, Arc::default());
        let parameters = PublishedParameters::new(settings, sharing);
        let supervisor = ZoneSupervisor::new(parameters.tuning(0, 1), Arc::default(), pacer);
        Self::on_this_thread(parameters, SupervisorActor::start(supervisor))
    }

    /// Returns the handle of the same zone under new settings. It keeps its keys and waiters.
    ///
    /// `in_flight`: changes of `in_flight` of limits in this zone. `now`: time at which the file
    /// was saved.
    pub fn retune(
        &self,
        settings: config::Zone,
        in_flight: Vec<InFlightChange>,
        store_health: Option<Arc<StoreHealth>>,
        now: Moment,
    ) -> Self {
        let has_new_rates = !self.settings.has_rates_of(&settings);
        let mut published = self.parameters.published();
        let previous = published.sharing.as_ref();
        let since = match previous {
            Some(previous) if !has_new_rates => previous.paces.since(),
            // The rates are new, or the zone was not shared. Wall-clock time, because gateways
            // compare it.
            _ => clock::to_wall(now),
        };
        let divergence = previous.map(|previous| Arc::clone(&previous.divergence));
        let divergence = divergence.unwrap_or_default();
        if has_new_rates {
            divergence.start_again();
        }
        let sharing = sharing(&settings, since, store_health, divergence);
        let settings = Arc::new(settings);
        let is_changed = settings != published.settings || sharing != published.sharing;
        published.settings = Arc::clone(&settings);
        published.sharing = sharing;
        if is_changed || !in_flight.is_empty() {
            self.publish(&published, &in_flight.into());
        }
        // With unchanged rates the metric stays: it may show the rate of another gateway, in force.
        if has_new_rates {
            self.metrics().show_rate(published.rate());
        }
        drop(published);
        Self {
            // The new settings have the same name: see `carries_over_to`.
            name: Arc::clone(&self.name),
            plans: metrics_of_plans(self.metrics(), &settings),
            settings,
            shards: Arc::clone(&self.shards),
            parameters: Arc::clone(&self.parameters),
        }
    }

    /// Sends each supervisor its share of the parameters, and the changed values of `in_flight`.
    fn publish(&self, published: &PublishedParameters, in_flight: &Arc<[InFlightChange]>) {
        let supervisors = &self.shards.supervisors;
        for (index, supervisor) in supervisors.iter().enumerate() {
            let tuning = published.tuning(index, supervisors.len());
            let in_flight = Arc::clone(in_flight);
            supervisor.post(move |zone| zone.retune(tuning, &in_flight));
        }
    }

    /// Returns the overrides in force.
    pub fn overrides(&self) -> Arc<Overrides> {
        self.parameters.overrides()
    }

    /// Changes the overrides. Returns the result of `change`.
    ///
    /// Waiters get new departure times at once.
    pub fn change_overrides<T>(&self, change: impl FnOnce(&mut Overrides) -> T) -> T {
        let mut published = self.parameters.published();
        let mut overrides = Overrides::clone(&published.overrides);
        let result = change(&mut overrides);
        if overrides != *published.overrides {
            self.parameters.set_overrides(&mut published, overrides);
            self.publish(&published, &[].into());
            // In a zone that gateways share, an override never changes the rate.
            if published.sharing.is_none() {
                self.metrics().show_rate(published.rate());
            }
        }
        result
    }

    /// Returns whether `key` is in dry run. `route_dry_run` applies unless an override says
    /// otherwise.
    pub fn dry_run(&self, key: &[u8], route_dry_run: bool) -> bool {
        self.parameters.dry_run(key, route_dry_run)
    }

    /// Returns whether a zone with these settings continues this zone and keeps its keys.
    pub fn carries_over_to(&self, settings: &config::Zone) -> bool {
        let present = &self.settings;
        present.name == settings.name
            && present.key == settings.key
            && present.algorithm == settings.algorithm
            && present.store == settings.store
    }

    /// Retires the zone, which was removed from the file: its supervisors end once no request
    /// waits, is in flight or is being decided.
    ///
    /// Overrides end now, because nobody could undo them.
    pub fn retire(&self) {
        self.change_overrides(|overrides| *overrides = Overrides::default());
        self.shards.retire();
    }

    /// Returns whether all supervisors have ended.
    pub fn has_ended(&self) -> bool {
        self.shards.living().next().is_none()
    }

    /// Returns whether a part of the zone's keys is not served.
    ///
    /// This happens when a supervisor has panicked several times and pauses before its restart.
    pub fn is_paused(&self) -> bool {
        self.shards.paused.any()
    }

    /// Forgets the charges of `key`.
    ///
    /// Returns the number of rejected waiters; `None` if the key is unknown.
    pub async fn forget(&self, key: Key, waiters: Waiters) -> Option<usize> {
        let (reply, answer) = oneshot::channel();
        let forget = move |zone: &mut ZoneSupervisor, key: &Key| zone.forget(key, waiters, reply);
        self.shards.send(&key, forget);
        answer.await.ok().flatten()
    }

    /// Rejects all waiters and all later requests, because the gateway stops.
    pub fn reject_all(&self) {
        self.shards.call_all(ZoneSupervisor::reject_all);
    }

    /// Returns the metrics of the plan with this index.
    fn plan(&self, index: Option<usize>) -> Option<&PlanMetrics> {
        self.plans.get(index?).map(|plan| &**plan)
    }

    /// Makes the supervisor of `key` handle a [`Crash`].
    #[cfg(test)]
    pub(crate) fn crash(&self, key: &Key, crash: Crash) {
        self.shards.send(key, move |zone, _| zone.crash(crash));
    }

    /// Returns the name, the same text in all versions of the zone.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns when the zone started without keys.
    pub fn started(&self) -> Moment {
        self.shards.started
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> &config::Zone {
        &self.settings
    }

    /// Returns whether another gateway that shares the zone has another rate for it.
    pub fn differs(&self) -> bool {
        let published = self.parameters.published();
        let sharing = published.sharing.as_ref();
        sharing.is_some_and(|sharing| sharing.divergence.is_seen())
    }

    /// Returns the names of the plans with their metrics.
    pub fn plan_metrics(&self) -> impl Iterator<Item = (&str, &PlanMetrics)> {
        let names = self.settings.plans.iter().map(|plan| &*plan.name);
        names.zip(self.plans.iter().map(|metrics| &**metrics))
    }

    /// Returns the zone's metrics.
    pub fn metrics(&self) -> &Arc<ZoneMetrics> {
        &self.shards.metrics
    }

    /// Returns the log events of the zone's requests. A reload keeps them, so it repeats no event.
    pub fn events(&self) -> &Arc<Events> {
        &self.shards.events
    }
}

/// Returns the metrics of a zone's plans, in the order of the file.
fn metrics_of_plans(metrics: &ZoneMetrics, zone: &config::Zone) -> Box<[Arc<PlanMetrics>]> {
    let plans = zone.plans.iter();
    plans.map(|plan| metrics.plan(&plan.name)).collect()
}

/// Returns how gateways share a zone through the store; `None` if it is kept in memory.
///
/// The check of the file guarantees that the store can keep its rates.
fn sharing(
    zone: &config::Zone,
    since: Moment,
    store_health: Option<Arc<StoreHealth>>,
    divergence: Arc<RateDivergence>,
) -> Option<Sharing> {
    if zone.store == config::StoreKind::Memory {
        return None;
    }
    Some(Sharing {
        store_health: store_health?,
        paces: Paces::new(zone, since).ok()?,
        divergence,
    })
}
