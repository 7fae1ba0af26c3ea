//! Runs the scenario of a seed with zones and shared gates.
//!
//! The seed defines all random choices, so the same seed gives the same steps.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use limit::Cost;

use super::apply_fault::apply_fault;
use super::client::{SlotUse, Visit, visit};
use super::gateway::Gateway;
use super::invariants::Invariants;
use super::network::Network;
use super::random::Random;
use super::redis::{Change, FakeRedis};
use super::scenario::Scenario;
use super::store::StoreServer;
use super::world::{HostId, World};
use crate::store::simulated;

/// Result of a seed.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Number of steps, and their hash.
    pub(super) digest: (u64, u64),
    /// Number of requests that joined.
    pub(super) joins: u64,
    /// Number of requests that a lease decided at once.
    pub(super) leased: u64,
    /// Counts of shared gates.
    ///
    /// Departures in slots, departures without the store, checks of fairness, and checks of gates
    /// that back off.
    pub(super) at_gates: [u64; 4],
    /// Description of a failure with the last steps; `None` if nothing failed.
    pub(super) failure: Option<String>,
}

/// All parts of a running simulation.
pub(super) struct Simulation {
    pub(super) world: Rc<World>,
    pub(super) scenario: Rc<Scenario>,
    pub(super) store: Rc<StoreServer>,
    pub(super) network: Rc<Network>,
    pub(super) invariants: Rc<Invariants>,
    pub(super) gateways: RefCell<Vec<Rc<Gateway>>>,
    /// Whether all requests are answered, and some time has passed.
    pub(super) is_over: Cell<bool>,
}

/// Kind of scenario that a seed generates.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    name: &'static str,
    new: fn(&mut Random) -> Scenario,
}

const fn kind(name: &'static str, new: fn(&mut Random) -> Scenario) -> Kind {
    Kind { name, new }
}

pub(super) const ZONES: Kind = kind("zones", Scenario::new);
pub(super) const GATES: Kind = kind("gates", Scenario::of_gates);
pub(super) const BACKOFF: Kind = kind("backoff", Scenario::of_backoff);
/// Zones and gates, which share the link of their gateway to the store.
pub(super) const BOTH: Kind = kind("both", Scenario::of_both);

/// Runs the scenario of a seed.
pub(super) fn run(kind: Kind, seed: u64, change: Change) -> Outcome {
    let mut random = Random::new(seed);
    let scenario = (kind.new)(&mut random);
    let outcome = run_scenario(scenario, random, change);
    let failure = outcome.failure.map(|failure| {
        let name = kind.name;
        format!(
            "{name}, seed {seed}: {failure}\nAgain: DRIP_SEED={seed} cargo test --lib simulation"
        )
    });
    Outcome { failure, ..outcome }
}

/// Runs a scenario whose scripts have this change.
pub(super) fn run_scenario(scenario: Scenario, random: Random, change: Change) -> Outcome {
    let ran = run_with(scenario, random, change, |simulation, random| {
        let play = Rc::clone(&simulation).play(random);
        (simulation, play.boxed_local())
    });
    let invariants = ran
        .parts
        .map(|simulation| Rc::clone(&simulation.invariants));
    let counts = invariants.map(|counts| (counts.joins(), counts.leased(), counts.gate_counts()));
    let (joins, leased, at_gates) = counts.unwrap_or_default();
    Outcome {
        digest: ran.digest,
        joins,
        leased,
        at_gates,
        failure: ran.failure,
    }
}

/// Result of a completed simulation.
pub(super) struct SimulationResult<T> {
    /// First result of `play`, see [`run_with`].
    pub(super) parts: Option<T>,
    /// Number of steps, and their hash.
    pub(super) digest: (u64, u64),
    pub(super) failure: Option<String>,
}

/// Runs the future that `play` makes of a simulation whose gateways have not started.
pub(super) fn run_with<T: 'static>(
    scenario: Scenario,
    mut random: Random,
    change: Change,
    play: impl FnOnce(Rc<Simulation>, Random) -> (T, LocalBoxFuture<'static, ()>),
) -> SimulationResult<T> {
    let scenario = Rc::new(scenario);
    let result = Rc::new(RefCell::new(None));
    let (parts_and_guard, played) = (Rc::clone(&result), Rc::clone(&scenario));
    let world = World::run(|world| {
        let invariants = Invariants::new(world, &played);
        let store = Rc::new(StoreServer::new(world, &invariants, FakeRedis::new(change)));
        let network = Network::new(world, &store, random.fork());
        let guard = simulated::set_network(Rc::new(Rc::clone(&network)));
        let simulation = Rc::new(Simulation {
            world: Rc::clone(world),
            scenario: played,
            store,
            network,
            invariants,
            gateways: RefCell::default(),
            is_over: Cell::default(),
        });
        let (parts, play) = play(simulation, random);
        parts_and_guard.replace(Some((parts, guard)));
        play
    });
    let failure = world.failure().map(|failure| {
        let last = world.trace().last();
        format!("{failure}\n{scenario:#?}\nThe last steps, in milliseconds:\n{last}\n{failure}")
    });
    SimulationResult {
        parts: result.take().map(|(parts, _guard)| parts),
        digest: world.trace().digest(),
        failure,
    }
}

impl Simulation {
    /// Starts all gateways, and the faults.
    pub(super) fn begin(self: &Rc<Self>) {
        let (least, most) = self.scenario.delay;
        for (number, skew) in self.scenario.clocks.iter().enumerate() {
            self.network.add_link(least, most);
            let gateway = Gateway::start(&self.world, &self.scenario, number, *skew);
            self.gateways.borrow_mut().push(gateway);
        }
        for (begin, fault) in self.scenario.faults.clone() {
            let simulation = Rc::clone(self);
            self.world.spawn(HostId::FIRST, async move {
                simulation.world.sleep_until(begin).await;
                apply_fault(&simulation, fault).await;
            });
        }
    }

    /// Plays the scenario, and waits until all requests are answered.
    async fn play(self: Rc<Self>, mut random: Random) {
        self.begin();
        for number in 0..self.scenario.clocks.len() {
            if !self.scenario.zones.is_empty() {
                let traffic = Rc::clone(&self).send_requests(number, random.fork());
                self.world.spawn(HostId::FIRST, traffic);
            }
            if !self.scenario.origins.is_empty() {
                let traffic = Rc::clone(&self).crowd(number, random.fork());
                self.world.spawn(HostId::FIRST, traffic);
            }
        }
        if self.scenario.crowd.shed.is_some() {
            self.world
                .spawn(HostId::FIRST, Rc::clone(&self).watch_backoffs());
        }
        if !self.scenario.is_calm() {
            self.world
                .spawn(HostId::FIRST, Rc::clone(&self).watch_outages());
        }
        self.world
            .sleep_until(self.scenario.lasts.max(self.scenario.healed()))
            .await;
        self.invariants.healed();
        while self.invariants.waiting() > 0 {
            self.world.sleep(Duration::from_millis(100)).await;
            self.invariants.check_waiting();
        }
        self.expect_nothing_left().await;
    }

    /// Records when gateways decide without the store, until the simulation is over.
    async fn watch_outages(self: Rc<Self>) {
        let mut alone = vec![false; self.gateways.borrow().len()];
        while !self.is_over.get() {
            for (number, gateway) in self.gateways.borrow().iter().enumerate() {
                self.invariants.check_gates(gateway);
                let is_out = gateway.is_out();
                if std::mem::replace(&mut alone[number], is_out) != is_out {
                    self.invariants.goes_alone(number, is_out);
                }
            }
            self.world.sleep(Duration::from_millis(3)).await;
        }
    }

    /// Records the share that gates pass, until the simulation is over.
    async fn watch_backoffs(self: Rc<Self>) {
        while !self.is_over.get() {
            for gateway in self.gateways.borrow().iter() {
                let (invariants, there) = (Rc::clone(&self.invariants), Rc::clone(gateway));
                // By the gateway's own clock.
                self.world.spawn(gateway.host, async move {
                    invariants.check_backoffs(&there, false);
                });
            }
            self.world.sleep(Duration::from_millis(100)).await;
        }
    }

    /// Checks that all gateways reach the store again, and that keys are forgotten.
    async fn expect_nothing_left(&self) {
        // After five seconds, shared gates do not count a dead gateway any more.
        let seconds = if self.scenario.origins.is_empty() {
            3
        } else if self.scenario.crowd.shed.is_some() {
            // All rates have grown back.
            100
        } else {
            7
        };
        let recovered = self.world.now().max(self.scenario.healed());
        let recovered = recovered + Duration::from_secs(seconds);
        self.world.sleep_until(recovered).await;
        self.is_over.set(true);
        let gateways = self.gateways.borrow().clone();
        if self.scenario.crowd.shed.is_some() {
            for gateway in &gateways {
                self.invariants.check_backoffs(gateway, true);
            }
        }
        self.invariants.over(&gateways);
        if !self.scenario.origins.is_empty() {
            // Gateways would report their presence forever.
            for gateway in &gateways {
                self.world.kill(gateway.host);
            }
        }
        let mut left = Vec::new();
        for _ in 0..200 {
            left = self.store.names();
            for gateway in &gateways {
                if self.scenario.origins.is_empty() {
                    left.extend(gateway.zones_with_keys().await);
                }
            }
            if left.is_empty() {
                return;
            }
            self.world.sleep(Duration::from_secs(5)).await;
        }
        self.invariants.remains(&left.join(", "));
    }

    /// Sends requests to the zones of a gateway, until the scenario sends no more.
    async fn send_requests(self: Rc<Self>, gateway: usize, mut random: Random) {
        // A gateway accepts requests only after it has read its file.
        self.world.sleep(Duration::from_millis(1)).await;
        while self.world.now() < self.scenario.lasts {
            let count = if random.chance(20) {
                random.number(1..8)
            } else {
                1
            };
            for _ in 0..count {
                let there = Rc::clone(&self.gateways.borrow()[gateway]);
                let planned = self.draw_visit(&mut random);
                visit(&self.world, &self.invariants, &there, &planned);
            }
            self.world
                .sleep(self.scenario.pause_after(count, &mut random))
                .await;
        }
    }

    /// Draws a request.
    fn draw_visit(&self, random: &mut Random) -> Visit {
        let any = random.index(self.scenario.zones.len());
        let hot = self.scenario.hot.filter(|_| random.chance(85));
        let zone = hot.unwrap_or(any);
        let plan = &self.scenario.zones[zone];
        let key = hot.map_or_else(|| random.pick(plan.keys), |_| plan.keys[0]);
        let limit = random.pick(&plan.limits);
        let [leaves, given_back, refunded, settled] = self.scenario.moods;
        // Some clients leave during a call to the store.
        let soon = if random.chance(40) { 6 } else { 400 };
        let leaves_after = random.chance(leaves).then(|| random.millis(0..soon));
        let slot_use = if random.chance(given_back) {
            SlotUse::GivenBack
        } else if random.chance(refunded) {
            SlotUse::Refunded(random.millis(0..300))
        } else if random.chance(settled) {
            let cost = Cost::new(random.small(1..9)).unwrap_or(Cost::ONE);
            SlotUse::Settled(random.millis(0..300), cost)
        } else {
            SlotUse::Used
        };
        Visit {
            zone,
            key,
            limit,
            leaves_after,
            slot_use,
        }
    }
}
