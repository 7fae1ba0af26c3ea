//! Reload: creates the next version of the gateway, which keeps the state of unchanged parts.
//!
//! To *retune* a part is to give it new settings. A *retired* part was removed from the file, and
//! ends once it has no requests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};

use actix_rt::ArbiterHandle;
use config::{self, Settings, StoreKind, Words};
use futures_util::future::join_all;
use limit::Moment;

use super::{Gateway, RetiredGate, learned_costs};
use crate::observe::access::AccessLog;
use crate::observe::metrics::Count;
use crate::origin::Origin;
use crate::room::OriginRoom;
use crate::time::clock;
use crate::zone::{StoreHealth, Zone, during_outage};

impl Gateway {
    /// Creates the gateway for new settings.
    ///
    /// A zone with the same name, key, algorithm and store keeps its keys and queues. New zones
    /// start. Zones that were removed from the file end once they have no waiters. Maintenance
    /// continues.
    pub fn reload(
        &self,
        mut settings: Settings,
        workers: &[ArbiterHandle],
        access: Option<AccessLog>,
    ) -> Self {
        let maintenances = self.maintenances_after(&mut settings.routes);
        Self {
            maintenances,
            ..self.next(settings, workers, access, clock::now())
        }
    }

    /// Creates the next version for settings that already include maintenance.
    ///
    /// `since`: instant from which changed rates count, compared between gateways. Rates that did
    /// not change keep their own instant.
    pub(super) fn next(
        &self,
        settings: Settings,
        workers: &[ArbiterHandle],
        access: Option<AccessLog>,
        since: Moment,
    ) -> Self {
        let store_health = store_health(&settings, self.store_health.as_ref());
        let store = store_health.as_ref();
        let (zones, retired) = self.reload_zones(&settings, workers, store, since);
        let origins = settings.origins.iter().map(|it| self.reload_origin(it));
        let origins: Vec<_> = origins.collect();
        let gateway = Self {
            retired_gates: self.retire_origins(&settings),
            rooms: rooms(&settings, &self.rooms, store, since),
            learned_costs: learned_costs::costs(&settings, self),
            classes: origins.iter().map(classes).collect(),
            origins,
            zones,
            retired,
            access,
            store_health,
            ..Self::new(settings, Arc::clone(&self.lifecycle))
        };
        gateway.share_gates(workers, since);
        gateway
    }

    /// Returns the zones of the new settings, and removed zones that still have requests.
    fn reload_zones(
        &self,
        settings: &Settings,
        workers: &[ArbiterHandle],
        store_health: Option<&Arc<StoreHealth>>,
        since: Moment,
    ) -> (Vec<Arc<Zone>>, Vec<Arc<Zone>>) {
        // `kept`: indices of the current zones that continue.
        let (mut zones, mut kept) = (Vec::new(), Vec::new());
        for configured in &settings.zones {
            let mut known = self.zones.iter();
            let (name, store) = (&configured.name, store_health.cloned());
            let zone = if let Some(index) = known.position(|it| it.carries_over_to(configured)) {
                kept.push(index);
                let in_flight = settings.in_flight_changes(&self.settings, name);
                self.zones[index].retune(configured.clone(), in_flight, store, since)
            } else {
                self.log_fresh_start(configured);
                let namesake = self.zones_in_use().find(|it| it.settings().name == *name);
                let metrics = namesake.map_or_else(Arc::default, |it| Arc::clone(it.metrics()));
                let events = namesake.map_or_else(Arc::default, |it| Arc::clone(it.events()));
                Zone::start(configured.clone(), workers, since, store, metrics, events)
            };
            zones.push(Arc::new(zone));
        }
        let mut retired = self.retired.clone();
        for (index, zone) in self.zones.iter().enumerate() {
            if !kept.contains(&index) {
                zone.retire();
                retired.push(Arc::clone(zone));
            }
        }
        retired.retain(|zone| !zone.has_ended());
        (zones, retired)
    }

    /// Creates the next version of an origin. A known origin keeps its state and its gate.
    fn reload_origin(&self, configured: &config::Origin) -> Origin {
        let configured = configured.at_addresses(&self.addresses());
        let mut known = self.origins.iter();
        if let Some(known) = known.find(|origin| origin.settings().name == configured.name) {
            return known.reload(configured);
        }
        let mut retired = self.retired_gates.iter();
        let gate = retired.find(|(name, _)| *name == configured.name);
        let former_gate = gate.map(|(_, gate)| gate);
        Origin::new(configured, former_gate, &self.lifecycle.dialer)
    }

    /// Retires the origins that were removed from the file.
    ///
    /// Returns the gates of such origins that still have requests.
    fn retire_origins(&self, settings: &Settings) -> Vec<RetiredGate> {
        let is_in_file = |name: &str| settings.origins.iter().any(|it| it.name == *name);
        let mut retired = self.retired_gates.clone();
        for origin in &self.origins {
            let name = &origin.settings().name;
            if !is_in_file(name) {
                origin.retire();
                retired.extend(origin.gate().map(|it| (name.clone(), Arc::clone(it))));
            }
        }
        retired.retain(|(name, gate)| !is_in_file(name) && gate.is_in_use());
        retired
    }

    /// Logs that a zone starts empty because its algorithm or its store has changed.
    ///
    /// A zone with another key also starts empty. `config::changes` reports that change.
    fn log_fresh_start(&self, configured: &config::Zone) {
        let mut all = self.zones.iter().map(|zone| zone.settings());
        let Some(known) = all.find(|known| known.name == configured.name) else {
            return;
        };
        let zone = &configured.name;
        if known.algorithm != configured.algorithm {
            let (from, to) = (known.algorithm, configured.algorithm);
            tracing::warn!(zone, %from, %to, "zone has another algorithm: its keys start empty");
        } else if known.store != configured.store {
            let (from, to) = (known.store.word(), configured.store.word());
            tracing::warn!(
                zone,
                from,
                to,
                "zone moved to another store: its keys start empty"
            );
        }
    }
}

/// Addresses by name.
pub type Addresses = BTreeMap<String, Vec<IpAddr>>;

impl Gateway {
    /// Returns whether any names are resolved to servers.
    pub(crate) fn resolves_names(&self) -> bool {
        let mut origins = self.settings.origins.iter();
        origins.any(|origin| origin.names_to_resolve().next().is_some())
    }

    /// Resolves the names of servers. A name that cannot be resolved keeps its addresses.
    pub async fn look_up(&self) -> Addresses {
        let origins = self.settings.origins.iter();
        let names: BTreeSet<&str> = origins.flat_map(config::Origin::names_to_resolve).collect();
        let known = self.addresses();
        let look_up = async |name: &str| {
            let found = self.lifecycle.dialer.look_up(name).await;
            let found = found.ok().or_else(|| known.get(name).cloned());
            Some((name.to_owned(), found?))
        };
        let found = join_all(names.into_iter().map(look_up)).await;
        found.into_iter().flatten().collect()
    }

    /// Returns the addresses in use.
    pub fn addresses(&self) -> Addresses {
        let known = self.lifecycle.addresses.lock();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Creates the next version with the same settings, and these addresses of servers.
    ///
    /// Servers whose address is unchanged keep their state.
    pub fn with_addresses(&self, addresses: Addresses, workers: &[ArbiterHandle]) -> Self {
        let known = self.lifecycle.addresses.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = addresses;
        self.reload(self.settings.clone(), workers, self.access.clone())
    }
}

/// Returns the health of the store, if these settings share zones or origins.
///
/// Reuses `known` if the settings of the store are unchanged.
fn store_health(settings: &Settings, known: Option<&Arc<StoreHealth>>) -> Option<Arc<StoreHealth>> {
    let during_outage = during_outage(settings)?;
    let health = match known.filter(|known| *known.settings() == settings.redis) {
        Some(same) => Arc::clone(same),
        None => Arc::new(StoreHealth::new(settings.redis.clone())),
    };
    health.set_during_outage(during_outage);
    Some(health)
}

/// Returns the waiting rooms of these settings' origins. Existing rooms get the new settings.
///
/// `since`: instant at which the file got new limits.
fn rooms(
    settings: &Settings,
    known: &[Option<Arc<OriginRoom>>],
    store: Option<&Arc<StoreHealth>>,
    since: Moment,
) -> Vec<Option<Arc<OriginRoom>>> {
    let now = clock::now();
    let room_of = |origin: &config::Origin| {
        let configured = origin.room.as_ref()?;
        let store = store.filter(|_| configured.store == StoreKind::Redis);
        let is_of_origin = |room: &&Arc<OriginRoom>| room.origin == origin.name;
        let current = known.iter().flatten().find(is_of_origin);
        if let Some(room) = current.filter(|room| room.is_kept_in(store)) {
            room.retune(configured, now);
            return Some(Arc::clone(room));
        }
        if current.is_some() {
            tracing::warn!(
                origin = origin.name,
                "room moved to another store: its queue starts empty"
            );
        }
        let room = OriginRoom::new(&origin.name, configured, store, (since, now));
        Some(Arc::new(room))
    };
    settings.origins.iter().map(room_of).collect()
}

/// Returns the classes at the gate of an origin, with their metrics; empty without a gate.
fn classes(origin: &Origin) -> Vec<(Box<str>, Arc<Count>)> {
    let classes = origin.settings().classes.iter();
    let named = classes.filter_map(|class| {
        let metrics = origin.gate()?.metrics().class(&class.name);
        Some((Box::from(&*class.name), metrics))
    });
    named.collect()
}
