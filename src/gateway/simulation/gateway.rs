//! A simulated gateway with zones and gates in the store, and its own clock.
//!
//! A zone limits the rate of each key. A gate bounds the pace of all requests to an origin.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use limit::{Moment, Rate};

use super::clock::{Skew, SkewedClock};
use super::network;
use super::scenario::{OriginPlan, Scenario};
use super::world::{HostId, World};
use crate::gate::{GateSharing, OriginGate, PermitSharing};
use crate::time::pacer::Pacer;
use crate::time::simulated::SimulatedTime;
use crate::zone::{Key, StoreHealth, Waiters, Zone};

/// Gateway, from its start until its process is killed.
pub(super) struct Gateway {
    pub(super) number: usize,
    pub(super) host: HostId,
    time: Rc<dyn SimulatedTime>,
    store_health: Arc<StoreHealth>,
    /// Zones. Leaked, so that requests that borrow them can be stored anywhere. A retune replaces
    /// one.
    zones: RefCell<Vec<&'static Zone>>,
    gates: RefCell<Vec<Arc<OriginGate>>>,
    pub(super) scenario: Rc<Scenario>,
}

impl Gateway {
    /// Starts a gateway whose file was saved just now.
    pub(super) fn start(
        world: &Rc<World>,
        scenario: &Rc<Scenario>,
        number: usize,
        skew: Skew,
    ) -> Rc<Self> {
        let time: Rc<dyn SimulatedTime> = Rc::new(SkewedClock::new(world, skew));
        let settings = config::Redis {
            url: network::url(number),
            timeout: scenario.timeout,
            ..config::Redis::default()
        };
        let gateway = Rc::new(Self {
            number,
            host: world.add_host(&time),
            time,
            store_health: Arc::new(StoreHealth::new(settings)),
            zones: RefCell::default(),
            gates: RefCell::default(),
            scenario: Rc::clone(scenario),
        });
        let (started, scenario) = (Rc::clone(&gateway), Rc::clone(scenario));
        world.spawn(gateway.host, async move {
            let pacer = Pacer::simulated(&started.time);
            Pacer::replace_here(Some(Rc::clone(&pacer)));
            let gates = scenario
                .origins
                .iter()
                .map(|origin| started.open_gate(origin));
            started.gates.replace(gates.collect());
            let zones = scenario.zones.iter().map(|zone| {
                let (pacer, since) = (Rc::clone(&pacer), started.save_time());
                let store_health = Some(Arc::clone(&started.store_health));
                let zone = Zone::start_here(zone.settings(), pacer, since, store_health);
                &*Box::leak(Box::new(zone))
            });
            started.zones.replace(zones.collect());
        });
        gateway
    }

    /// Opens the gate of an origin. Tasks of this host call the store for it.
    fn open_gate(&self, origin: &OriginPlan) -> Arc<OriginGate> {
        let settings = origin.settings(origin.rate);
        let gate = OriginGate::new(&settings, None, Arc::default());
        let gate = gate.expect("an origin with a gate");
        let store = Some(&self.store_health);
        for task in gate.begin_sharing(&settings, store, self.save_time()) {
            actix_rt::spawn(task.run());
        }
        gate
    }

    /// Returns the gate of the origin with this index, once the gateway has started.
    pub(super) fn gate(&self, index: usize) -> Option<Arc<OriginGate>> {
        self.gates.borrow().get(index).cloned()
    }

    /// Returns how the gate of an origin gets its slots; `None` if there is no such origin.
    pub(super) fn sharing(&self, index: usize) -> Option<GateSharing> {
        self.gate(index)?.sharing()
    }

    /// Returns the state of the permits that the first gate shares.
    pub(super) fn permits(&self) -> Option<PermitSharing> {
        self.gate(0)?.permit_sharing()
    }

    /// Returns the share of an origin's rate that its gate passes; `None` before the start.
    pub(super) fn passed_share(&self, index: usize) -> Option<f64> {
        let rate = self.gate(index)?.status(0).rate?;
        Some(rate.per_second() / self.scenario.origins[index].rate.per_second())
    }

    /// Saves the file with another rate for an origin.
    pub(super) fn retune_origin(self: &Rc<Self>, world: &Rc<World>, index: usize, rate: Rate) {
        let gateway = Rc::clone(self);
        world.spawn(self.host, async move {
            let Some(gate) = gateway.gate(index) else {
                return;
            };
            let settings = gateway.scenario.origins[index].settings(rate);
            gate.reload(&settings, None, true);
            let store = Some(&gateway.store_health);
            let mut new_tasks = gate.begin_sharing(&settings, store, gateway.save_time());
            assert!(
                new_tasks.next().is_none(),
                "the tasks of the gate run already"
            );
        });
    }

    /// Returns the present time by the gateway's clock, at which a file is saved.
    fn save_time(&self) -> Moment {
        self.time.now()
    }

    /// Returns the zone with this index, once the gateway has started.
    pub(super) fn zone(&self, index: usize) -> Option<&'static Zone> {
        self.zones.borrow().get(index).copied()
    }

    /// Saves the file with another rate for a zone.
    pub(super) fn retune(&self, index: usize, rate: Rate) {
        let Some(zone) = self.zone(index) else {
            return;
        };
        let settings = config::Zone {
            rate,
            ..zone.settings().clone()
        };
        let store_health = Some(Arc::clone(&self.store_health));
        let zone = zone.retune(settings, Vec::new(), store_health, self.save_time());
        self.zones.borrow_mut()[index] = Box::leak(Box::new(zone));
    }

    /// Makes a zone forget a key, as an operator does. Waiting requests keep their slots.
    pub(super) async fn forget(&self, index: usize, key: &str) {
        if let Some(zone) = self.zone(index) {
            zone.forget(Key::from(key.as_bytes()), Waiters::Stay).await;
        }
    }

    /// Returns descriptions of the zones that remember a key.
    pub(super) async fn zones_with_keys(&self) -> Vec<String> {
        let mut found = Vec::new();
        let zones = self.zones.borrow().clone();
        for zone in zones {
            let stats = zone.stats(0).await;
            if stats.active + stats.parked + stats.depth > 0 {
                let (number, name) = (self.number, &zone.settings().name);
                found.push(format!("a key of {name} at gateway {number}"));
            }
        }
        found
    }

    /// Returns whether the gateway knows that it cannot reach the store.
    pub(super) fn is_out(&self) -> bool {
        self.store_health.outage().is_some()
    }
}
