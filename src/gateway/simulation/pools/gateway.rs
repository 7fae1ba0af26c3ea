//! A gateway that borrows places.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::plan::PoolPlan;
use crate::gate::{OriginGate, PlaceSharing};
use crate::simulation::clock::{Skew, SkewedClock};
use crate::simulation::network;
use crate::simulation::world::{HostId, World};
use crate::time::pacer::Pacer;
use crate::time::simulated::SimulatedTime;
use crate::zone::StoreHealth;

/// A gateway from its start to its death.
pub(super) struct PoolGateway {
    pub(super) number: usize,
    pub(super) host: HostId,
    time: Rc<dyn SimulatedTime>,
    store_health: Arc<StoreHealth>,
    gate: RefCell<Option<Arc<OriginGate>>>,
    plan: Rc<PoolPlan>,
}

impl PoolGateway {
    /// Starts a gateway whose file was saved just now.
    pub(super) fn start(
        world: &Rc<World>,
        plan: &Rc<PoolPlan>,
        number: usize,
        (most, skew): (usize, Skew),
    ) -> Rc<Self> {
        let time: Rc<dyn SimulatedTime> = Rc::new(SkewedClock::new(world, skew));
        let settings = config::Redis {
            url: network::url(number),
            timeout: plan.timeout,
            ..config::Redis::default()
        };
        let gateway = Rc::new(Self {
            number,
            host: world.add_host(&time),
            time,
            store_health: Arc::new(StoreHealth::new(settings)),
            gate: RefCell::default(),
            plan: Rc::clone(plan),
        });
        let its = Rc::clone(&gateway);
        world.spawn(gateway.host, async move {
            Pacer::replace_here(Some(Pacer::simulated(&its.time)));
            let settings = its.plan.settings(most);
            let gate = OriginGate::of(&settings, None).expect("an origin with a gate");
            let (store, since) = (Some(&its.store_health), its.time.now());
            for task in gate.begin_sharing(&settings, store, since) {
                actix_rt::spawn(task.run());
            }
            its.gate.replace(Some(gate));
        });
        gateway
    }

    /// Its gate, once it has started.
    pub(super) fn gate(&self) -> Option<Arc<OriginGate>> {
        self.gate.borrow().clone()
    }

    pub(super) fn sharing(&self) -> Option<PlaceSharing> {
        self.gate()?.place_sharing()
    }

    /// The file is saved with another maximum.
    pub(super) fn retune(self: &Rc<Self>, world: &Rc<World>, most: usize) {
        let its = Rc::clone(self);
        world.spawn(self.host, async move {
            let Some(gate) = its.gate() else {
                return;
            };
            let settings = its.plan.settings(most);
            gate.reload(&settings, None, true);
            let (store, since) = (Some(&its.store_health), its.time.now());
            let mut begun = gate.begin_sharing(&settings, store, since);
            assert!(begun.next().is_none(), "a task borrows already");
        });
    }

    /// It stops: it gives back what it does not use.
    pub(super) async fn leave(&self) {
        if let Some(gate) = self.gate() {
            gate.give_back_places().await;
        }
    }
}
