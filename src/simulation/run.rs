//! Runs the scenario of a seed.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;

use super::client::{Then, Visit, visit};
use super::gateway::Gateway;
use super::invariants::Invariants;
use super::network::Network;
use super::random::Random;
use super::redis::FakeRedis;
use super::scenario::{Fault, Scenario};
use super::store::StoreServer;
use super::world::{HostId, World};
use crate::limit::Cost;
use crate::store::simulated;

/// How a seed ended.
#[derive(Debug)]
pub(super) struct Outcome {
    /// How many steps there were, and what they hash to.
    pub(super) digest: (u64, u64),
    /// How many requests joined.
    pub(super) joins: u64,
    /// What was wrong, and the last steps; `None` if nothing was.
    pub(super) failure: Option<String>,
}

/// All parts of a running simulation.
struct Simulation {
    world: Rc<World>,
    scenario: Rc<Scenario>,
    store: Rc<StoreServer>,
    network: Rc<Network>,
    invariants: Rc<Invariants>,
    gateways: RefCell<Vec<Rc<Gateway>>>,
}

/// Runs a seed. `change` is what becomes of each script before it runs.
pub(super) fn run(seed: u64, change: fn(&str) -> String) -> Outcome {
    let mut random = Random::new(seed);
    let scenario = Rc::new(Scenario::new(&mut random));
    let mut joins = 0;
    let mut network = None;
    let all = &mut joins;
    let known = Rc::new(RefCell::new(None));
    let found = Rc::clone(&known);
    let its = Rc::clone(&scenario);
    let world = World::run(|world| {
        let invariants = Invariants::new(world, &its);
        *found.borrow_mut() = Some(Rc::clone(&invariants));
        let store = Rc::new(StoreServer::new(world, &invariants, FakeRedis::new(change)));
        let its_network = Network::new(world, &store, random.fork());
        let guard = simulated::set_network(Rc::new(Rc::clone(&its_network)));
        network = Some(guard);
        let simulation = Rc::new(Simulation {
            world: Rc::clone(world),
            scenario: its,
            store,
            network: its_network,
            invariants,
            gateways: RefCell::default(),
        });
        simulation.play(random).boxed_local()
    });
    if let Some(invariants) = known.take() {
        *all = invariants.joins();
    }
    let failure = world.failure().map(|failure| {
        let (scenario, last) = (&scenario, world.trace().last());
        format!(
            "seed {seed}: {failure}\n{scenario:#?}\nThe last steps, in milliseconds:\n{last}\n\
             seed {seed}: {failure}\nAgain: DRIP_SEED={seed} cargo test --lib simulation"
        )
    });
    Outcome {
        digest: world.trace().digest(),
        joins,
        failure,
    }
}

impl Simulation {
    async fn play(self: Rc<Self>, mut random: Random) {
        let (least, most) = self.scenario.delay;
        for (number, skew) in self.scenario.clocks.iter().enumerate() {
            self.network.add_link(least, most);
            let gateway = Gateway::start(&self.world, &self.scenario, number, *skew);
            self.gateways.borrow_mut().push(gateway);
            let traffic = Rc::clone(&self).send_requests(number, random.fork());
            self.world.spawn(HostId::FIRST, traffic);
        }
        for (at, fault) in self.scenario.faults.clone() {
            let simulation = Rc::clone(&self);
            self.world.spawn(HostId::FIRST, async move {
                simulation.world.sleep_until(at).await;
                simulation.suffer(fault).await;
            });
        }
        self.world.sleep_until(self.scenario.lasts).await;
        while self.invariants.waiting() > 0 {
            self.world.sleep(Duration::from_millis(100)).await;
            self.invariants.check_waiting();
        }
    }

    async fn send_requests(self: Rc<Self>, gateway: usize, mut random: Random) {
        // Before its file is read, a gateway takes no requests.
        self.world.sleep(Duration::from_millis(1)).await;
        while self.world.now() < self.scenario.lasts {
            let many = if random.chance(20) {
                random.number(1..8)
            } else {
                1
            };
            for _ in 0..many {
                let there = Rc::clone(&self.gateways.borrow()[gateway]);
                let what = self.visit(&mut random);
                visit(&self.world, &self.invariants, &there, &what);
            }
            let nanos = u64::try_from(self.scenario.pause.as_nanos()).unwrap_or(u64::MAX);
            let pause = Duration::from_nanos(random.number(1..2 * nanos.max(1) * many + 1));
            self.world.sleep(pause).await;
        }
    }

    fn visit(&self, random: &mut Random) -> Visit {
        let zones = self.scenario.zones.len() as u64;
        let zone = usize::try_from(random.number(0..zones)).unwrap_or(0);
        let plan = &self.scenario.zones[zone];
        let key = random.pick(plan.keys);
        let limit = random.pick(&plan.limits);
        let [leaves, given_back, refunded, settled] = self.scenario.moods;
        let leaves_after = random.chance(leaves).then(|| random.millis(0..400));
        let then = if random.chance(given_back) {
            Then::GivenBack
        } else if random.chance(refunded) {
            Then::Refunded(random.millis(0..300))
        } else if random.chance(settled) {
            let cost = Cost::new(random.small(1..9)).unwrap_or(Cost::ONE);
            Then::Settled(random.millis(0..300), cost)
        } else {
            Then::Used
        };
        Visit {
            zone,
            key,
            limit,
            leaves_after,
            then,
        }
    }

    async fn suffer(&self, fault: Fault) {
        self.world.note(format_args!("{fault:?}"));
        match fault {
            Fault::Retune {
                gateway,
                zone,
                rate,
            } => {
                self.gateways.borrow()[gateway].retune(zone, rate);
            }
        }
    }
}
