//! Runs the plan of a seed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;

use super::gateway::PoolGateway;
use super::judge::UseTotals;
use super::origin::CountingOrigin;
use super::plan::{PoolFault, PoolPlan};
use crate::simulation::clock::Skew;
use crate::simulation::invariants::Invariants;
use crate::simulation::network::Network;
use crate::simulation::random::Random;
use crate::simulation::redis::{Change, FakeRedis};
use crate::simulation::scenario::{Crowd, Scenario};
use crate::simulation::store::{StoreServer, StoreState};
use crate::simulation::world::{HostId, World};
use crate::store::simulated;

/// How a seed ended.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) digest: (u64, u64),
    /// How many requests were at the origin.
    pub(super) started: u64,
    /// How often the use of places could be judged.
    pub(super) judged: u64,
    /// The part of the places that was used while requests waited and nothing failed.
    pub(super) used: f64,
    /// The longest wait at each gateway.
    pub(super) waits: Vec<Duration>,
    /// Why it failed; `None`: it did not.
    pub(super) failure: Option<String>,
}

/// All parts of a running simulation.
pub(super) struct Pool {
    pub(super) world: Rc<World>,
    pub(super) plan: Rc<PoolPlan>,
    pub(super) origin: Rc<CountingOrigin>,
    pub(super) gateways: RefCell<Vec<Rc<PoolGateway>>>,
    store: Rc<StoreServer>,
    network: Rc<Network>,
    pub(super) most: Cell<usize>,
    pub(super) judged: UseTotals,
    waits: RefCell<Vec<Duration>>,
}

pub(super) fn run(seed: u64, change: Change) -> Outcome {
    let mut random = Random::new(seed);
    let plan = PoolPlan::new(&mut random);
    let outcome = run_plan(plan, random, change);
    let failure = outcome.failure.map(|failure| {
        format!(
            "pools, seed {seed}: {failure}\nAgain: DRIP_SEED={seed} cargo test --lib simulation::pools"
        )
    });
    Outcome { failure, ..outcome }
}

/// Runs a plan. `change` is what becomes of each script before it runs.
pub(super) fn run_plan(plan: PoolPlan, mut random: Random, change: Change) -> Outcome {
    let plan = Rc::new(plan);
    let known = Rc::new(RefCell::new(None));
    let (found, its) = (Rc::clone(&known), Rc::clone(&plan));
    let world = World::run(|world| {
        let invariants = Invariants::new(world, &Rc::new(nothing_else(&its)));
        let store = Rc::new(StoreServer::new(world, &invariants, FakeRedis::new(change)));
        let network = Network::new(world, &store, random.fork());
        let guard = simulated::set_network(Rc::new(Rc::clone(&network)));
        let pool = Rc::new(Pool {
            world: Rc::clone(world),
            origin: CountingOrigin::new(world, &its),
            gateways: RefCell::default(),
            store,
            network,
            most: Cell::new(its.most),
            judged: UseTotals::default(),
            waits: RefCell::new(vec![Duration::ZERO; its.clocks.len()]),
            plan: its,
        });
        found.replace(Some((Rc::clone(&pool), guard)));
        pool.play(random).boxed_local()
    });
    let failure = world.failure().map(|failure| {
        let last = world.trace().last();
        format!("{failure}\n{plan:#?}\nThe last steps, in milliseconds:\n{last}\n{failure}")
    });
    let known = known.take();
    let pool = known.as_ref().map(|(pool, _)| pool);
    Outcome {
        digest: world.trace().digest(),
        started: pool.map_or(0, |pool| pool.origin.started()),
        judged: pool.map_or(0, |pool| pool.judged.spans.get()),
        used: pool.map_or(1.0, |pool| pool.judged.all.get().part()),
        waits: pool.map_or_else(Vec::new, |pool| pool.waits.borrow().clone()),
        failure,
    }
}

/// A scenario of the other simulations in which nothing happens.
fn nothing_else(plan: &PoolPlan) -> Scenario {
    Scenario {
        clocks: plan.clocks.clone(),
        zones: Vec::new(),
        origins: Vec::new(),
        crowd: Crowd::default(),
        delay: plan.delay,
        timeout: plan.timeout,
        lasts: plan.lasts,
        pause: Duration::ZERO,
        hot: None,
        moods: [0; 4],
        faults: Vec::new(),
    }
}

impl Pool {
    async fn play(self: Rc<Self>, mut random: Random) {
        let (least, most) = self.plan.delay;
        for (number, skew) in self.plan.clocks.iter().enumerate() {
            self.network.add_link(least, most);
            self.start(number, *skew);
        }
        self.crowd(&mut random);
        for (at, fault) in self.plan.faults.clone() {
            let pool = Rc::clone(&self);
            self.world.spawn(HostId::FIRST, async move {
                pool.world.sleep_until(at).await;
                pool.suffer(fault).await;
            });
        }
        self.world
            .spawn(HostId::FIRST, Rc::clone(&self).judge_use());
        let longest = self
            .plan
            .faults
            .iter()
            .map(|(at, fault)| *at + fault.lasts());
        let healed = longest.max().unwrap_or_default().max(self.plan.lasts);
        self.world.sleep_until(healed).await;
        // All that waited has its turn, once what was withheld is free.
        let takes = self
            .plan
            .orphan
            .max(Duration::from_millis(self.plan.takes.1));
        let late = healed + self.plan.orphan * 2 + Duration::from_secs(10);
        let clients: u64 = self.plan.clients.iter().sum();
        let late = late + takes * u32::try_from(clients).unwrap_or(1);
        while self.origin.waiting() > 0 {
            self.world.sleep(Duration::from_millis(50)).await;
            if self.world.now() > late {
                let waiting = self.origin.waiting();
                return (self.world).fail(format_args!("{waiting} requests wait for ever"));
            }
        }
        self.world.sleep(takes + Duration::from_secs(1)).await;
        self.expect_nothing_left().await;
    }

    fn start(&self, number: usize, skew: Skew) {
        let with = (self.most.get(), skew);
        let gateway = PoolGateway::start(&self.world, &self.plan, number, with);
        let mut gateways = self.gateways.borrow_mut();
        if number < gateways.len() {
            gateways[number] = gateway;
        } else {
            gateways.push(gateway);
        }
    }

    pub(super) fn note_wait(&self, gateway: usize, waited: Duration) {
        // At first it is found out who holds what.
        if self.world.now() < Duration::from_secs(4) + waited {
            return;
        }
        let longest = &mut self.waits.borrow_mut()[gateway];
        *longest = waited.max(*longest);
        if self.plan.longest.is_some_and(|most| waited > most) {
            (self.world).fail(format_args!("a request waited at {gateway} for {waited:?}"));
        }
    }

    /// At the end nothing is withheld, and gateways that leave give all back.
    async fn expect_nothing_left(&self) {
        self.world
            .sleep(self.plan.orphan + Duration::from_secs(4))
            .await;
        let gateways = self.gateways.borrow().clone();
        for gateway in &gateways {
            let sharing = gateway.sharing();
            let pool = sharing.as_ref().and_then(|it| it.pool);
            let is_whole = pool.is_some_and(|it| it.withheld == 0 && it.in_use == 0);
            if !is_whole || sharing.is_some_and(|it| it.is_out) {
                let number = gateway.number;
                return (self.world).fail(format_args!("gateway {number} has {pool:?} after all"));
            }
        }
        for gateway in &gateways {
            let (its, done) = (Rc::clone(gateway), Rc::new(Cell::new(false)));
            let ends = Rc::clone(&done);
            self.world.spawn(gateway.host, async move {
                its.leave().await;
                ends.set(true);
            });
            self.world.sleep(Duration::from_millis(500)).await;
            if !done.get() {
                let number = gateway.number;
                return (self.world).fail(format_args!("gateway {number} gives nothing back"));
            }
        }
    }

    async fn suffer(self: Rc<Self>, fault: PoolFault) {
        let (world, store) = (&self.world, &self.store);
        world.note(format_args!("{fault:?}"));
        let at = |gateway: usize| Rc::clone(&self.gateways.borrow()[gateway]);
        let reset_all = || self.network.links().iter().for_each(|link| link.reset());
        match fault {
            PoolFault::Crash {
                gateway,
                lasts,
                clock,
            } => {
                self.kill(gateway);
                world.sleep(lasts).await;
                self.kill(gateway);
                self.start(gateway, clock);
            }
            PoolFault::Stop { gateway, lasts } => {
                let host = at(gateway).host;
                world.stop(host, true);
                world.sleep(lasts).await;
                world.stop(host, false);
            }
            PoolFault::Partition { gateway, lasts } => {
                let until = world.now() + lasts;
                self.network.link(gateway).blocked_until.set(until);
            }
            PoolFault::Island { lasts } => {
                for link in self.network.links() {
                    link.blocked_until.set(world.now() + lasts);
                }
            }
            PoolFault::Slow {
                gateway,
                more,
                loss,
                lasts,
            } => {
                let (link, (least, most)) = (self.network.link(gateway), self.plan.delay);
                link.set_delay(least + more, most + more);
                link.loss.set(loss);
                world.sleep(lasts).await;
                link.set_delay(least, most);
                link.loss.set(0);
            }
            PoolFault::Reset { gateway } => self.network.link(gateway).reset(),
            PoolFault::Death { lasts } => {
                store.state.set(StoreState::Dead);
                reset_all();
                world.sleep(lasts).await;
                store.start_empty();
                store.state.set(StoreState::Works);
            }
            PoolFault::Failover { loses } => {
                let replica = store.snapshot();
                world.sleep(loses).await;
                store.restore(replica);
                reset_all();
            }
            PoolFault::Flush => store.flush(),
            PoolFault::SetBack { micros } => store.jump(micros),
            PoolFault::RetuneAll { most } => {
                self.retuned(most);
                for gateway in self.gateways.borrow().iter() {
                    gateway.retune(world, most);
                }
            }
        }
    }

    fn retuned(&self, most: usize) {
        self.most.set(most);
        self.origin.retuned(most);
    }

    fn kill(&self, number: usize) {
        let host = self.gateways.borrow()[number].host;
        self.origin.died(number);
        self.world.kill(host);
        self.network.link(number).reset();
    }
}
