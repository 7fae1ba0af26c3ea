//! Runs the scenario of a seed with shared permits.
//!
//! A permit is the right to run one request at the origin. Gateways share the permits through the
//! store.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;

use super::judge::UseTotals;
use super::origin::CountingOrigin;
use super::plan::PoolPlan;
use crate::simulation::gateway::Gateway;
use crate::simulation::random::Random;
use crate::simulation::redis::Change;
use crate::simulation::run::{Simulation, run_with};
use crate::simulation::scenario::{Fault, Scenario};
use crate::simulation::world::HostId;

/// Result of a seed.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Number of steps, and their hash.
    pub(super) digest: (u64, u64),
    /// Number of requests that were at the origin.
    pub(super) started: u64,
    /// Number of checks of the use of permits.
    pub(super) checked: u64,
    /// Share of the permits that was used while requests waited and nothing failed.
    pub(super) used: f64,
    /// Longest wait at each gateway.
    pub(super) waits: Vec<Duration>,
    /// Reason of a failure; `None` if it did not fail.
    pub(super) failure: Option<String>,
}

/// All parts of a running simulation.
pub(super) struct Pool {
    pub(super) simulation: Rc<Simulation>,
    pub(super) plan: PoolPlan,
    pub(super) origin: CountingOrigin,
    pub(super) checked: UseTotals,
    /// Longest wait at each gateway.
    waits: RefCell<Vec<Duration>>,
}

/// Runs the scenario of a seed.
pub(super) fn run(seed: u64, change: Change) -> Outcome {
    let mut random = Random::new(seed);
    let (scenario, plan) = PoolPlan::new(&mut random);
    let outcome = run_plan(scenario, plan, random, change);
    let failure = outcome.failure.map(|failure| {
        format!(
            "pools, seed {seed}: {failure}\nAgain: DRIP_SEED={seed} cargo test --lib simulation::pools"
        )
    });
    Outcome { failure, ..outcome }
}

/// Runs a plan whose scripts have this change.
pub(super) fn run_plan(
    scenario: Scenario,
    plan: PoolPlan,
    random: Random,
    change: Change,
) -> Outcome {
    let ran = run_with(scenario, random, change, |simulation, random| {
        let scenario = &simulation.scenario;
        let pool = Rc::new(Pool {
            origin: CountingOrigin::new(&simulation.world, &scenario.origins[0]),
            checked: UseTotals::default(),
            waits: RefCell::new(vec![Duration::ZERO; scenario.clocks.len()]),
            simulation,
            plan,
        });
        (Rc::clone(&pool), pool.play(random).boxed_local())
    });
    let pool = ran.parts.as_ref();
    let failure = ran.failure.map(|failure| {
        let plan = pool.map(|pool| &pool.plan);
        format!("{failure}\n{plan:?}")
    });
    Outcome {
        digest: ran.digest,
        started: pool.map_or(0, |pool| pool.origin.started.get()),
        checked: pool.map_or(0, |pool| pool.checked.spans.get()),
        used: pool.map_or(1.0, |pool| pool.checked.all.get().part()),
        waits: pool.map_or_else(Vec::new, |pool| pool.waits.borrow().clone()),
        failure,
    }
}

impl Pool {
    pub(super) fn gateway(&self, number: usize) -> Rc<Gateway> {
        Rc::clone(&self.simulation.gateways.borrow()[number])
    }

    pub(super) fn orphan(&self) -> Duration {
        self.simulation.scenario.origins[0].orphan
    }

    /// Plays the scenario, and waits until all requests are answered.
    async fn play(self: Rc<Self>, mut random: Random) {
        let (world, scenario) = (&self.simulation.world, &self.simulation.scenario);
        for (begin, fault) in scenario.faults.clone() {
            let pool = Rc::clone(&self);
            world.spawn(HostId::FIRST, async move {
                pool.simulation.world.sleep_until(begin).await;
                if let Fault::RetuneAll { most } = fault {
                    pool.origin.retuned(most);
                }
            });
        }
        self.simulation.begin();
        self.crowd(&mut random);
        world.spawn(HostId::FIRST, Rc::clone(&self).judge_use());
        let healed = scenario.healed().max(scenario.lasts);
        world.sleep_until(healed).await;
        // All waiters are admitted once withheld permits are free.
        let takes = self.orphan().max(Duration::from_millis(self.plan.takes.1));
        let deadline = healed + self.orphan() * 2 + Duration::from_secs(10);
        let clients: u64 = self.plan.clients.iter().sum();
        let deadline = deadline + takes * u32::try_from(clients).unwrap_or(1);
        while self.origin.waiting() > 0 {
            world.sleep(Duration::from_millis(50)).await;
            if world.now() > deadline {
                let waiting = self.origin.waiting();
                return world.fail(format_args!("{waiting} requests wait for ever"));
            }
        }
        world.sleep(takes + Duration::from_secs(1)).await;
        self.expect_nothing_left().await;
    }

    /// Records a wait. Fails if it was longer than the plan allows.
    pub(super) fn note_wait(&self, gateway: usize, waited: Duration) {
        let world = &self.simulation.world;
        // At first the store must learn the holders.
        if world.now() < Duration::from_secs(4) + waited {
            return;
        }
        let longest = &mut self.waits.borrow_mut()[gateway];
        *longest = waited.max(*longest);
        if self.plan.longest.is_some_and(|most| waited > most) {
            world.fail(format_args!("a request waited at {gateway} for {waited:?}"));
        }
    }

    /// Checks that nothing is withheld at the end, and leaving gateways return all permits.
    async fn expect_nothing_left(&self) {
        let world = &self.simulation.world;
        world.sleep(self.orphan() + Duration::from_secs(4)).await;
        let gateways = self.simulation.gateways.borrow().clone();
        for gateway in &gateways {
            let sharing = gateway.permits();
            let pool = sharing.as_ref().and_then(|sharing| sharing.pool);
            let is_whole = pool.is_some_and(|pool| pool.withheld == 0 && pool.in_use == 0);
            if !is_whole || sharing.is_some_and(|sharing| sharing.is_out) {
                let number = gateway.number;
                return world.fail(format_args!("gateway {number} has {pool:?} after all"));
            }
        }
        for gateway in &gateways {
            let (there, done) = (Rc::clone(gateway), Rc::new(Cell::new(false)));
            let ends = Rc::clone(&done);
            world.spawn(gateway.host, async move {
                if let Some(gate) = there.gate(0) {
                    gate.give_back_permits().await;
                }
                ends.set(true);
            });
            world.sleep(Duration::from_millis(500)).await;
            if !done.get() {
                let number = gateway.number;
                return world.fail(format_args!("gateway {number} gives nothing back"));
            }
        }
    }
}
