//! Simulated clients of shared gates: they join, wait or leave, and occupy the origin.
//!
//! A gate bounds the pace of all requests to an origin. Gateways share its slots, the instants at
//! which requests leave, through the store.

use std::rc::Rc;
use std::time::Duration;

use limit::{Cost, WaitLimits};

use super::client::within_patience;
use super::gateway::Gateway;
use super::invariants::Invariants;
use super::random::Random;
use super::run::Simulation;
use super::world::World;
use crate::gate::{Admission, WaitError};
use crate::time::pacer::Pacer;

/// A request for an origin with a gate, with the future behaviour of its client.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) origin: usize,
    /// Index of the key.
    pub(super) key: usize,
    /// Index of the class.
    pub(super) class: usize,
    pub(super) cost: Cost,
    /// Maximum predicted wait at which the request still joins.
    pub(super) max_wait: Option<Duration>,
    /// Maximum wait of the client.
    pub(super) leaves_after: Option<Duration>,
    /// Time at the origin.
    pub(super) takes: Duration,
    /// Status of the response.
    pub(super) status: u16,
    /// Final cost, if the response reports one.
    pub(super) settled: Option<Cost>,
}

impl Simulation {
    /// Sends requests to the gates of a gateway, until the scenario sends no more.
    pub(super) async fn crowd(self: Rc<Self>, gateway: usize, mut random: Random) {
        // A gateway accepts requests only after it has read its file.
        self.world.sleep(Duration::from_millis(1)).await;
        let scenario = Rc::clone(&self.scenario);
        let crowd = scenario.crowd;
        // Some gateways have only some of the keys.
        let keys = random.number(1..5);
        if random.chance(30) {
            // Other gateways have started before.
            self.world.sleep(random.millis(0..300)).await;
        }
        if crowd.is_full {
            self.fill_queues(gateway, keys, &mut random);
        }
        let mut count = crowd.first.max(1);
        while self.world.now() < scenario.lasts {
            for _ in 0..count {
                let there = Rc::clone(&self.gateways.borrow()[gateway]);
                let passage = self.draw_passage(keys, &mut random);
                send(&self.world, &self.invariants, &there, passage);
            }
            count = if random.chance(crowd.bursts) {
                random.number(1..crowd.most)
            } else {
                1
            };
            self.world
                .sleep(scenario.pause_after(count, &mut random))
                .await;
        }
    }

    /// Sends so many requests of all keys that each key waits for a while.
    fn fill_queues(&self, gateway: usize, keys: u64, random: &mut Random) {
        let there = Rc::clone(&self.gateways.borrow()[gateway]);
        for (origin, plan) in self.scenario.origins.iter().enumerate() {
            let known = usize::try_from(keys).unwrap_or(1).min(plan.keys.len());
            for (key, class) in (0..known).flat_map(|key| {
                let classes = 0..plan.classes.len();
                classes.map(move |class| (key, class))
            }) {
                let gateways = self.scenario.clocks.len();
                for _ in 0..plan.enough(key, class, gateways) {
                    let passage = Passage {
                        origin,
                        key,
                        class,
                        max_wait: None,
                        ..self.draw_passage(keys, random)
                    };
                    send(&self.world, &self.invariants, &there, passage);
                }
            }
        }
    }

    /// Draws a request of one of the first `keys` keys.
    fn draw_passage(&self, keys: u64, random: &mut Random) -> Passage {
        let origin = random.index(self.scenario.origins.len());
        let plan = &self.scenario.origins[origin];
        let known = usize::try_from(keys).unwrap_or(1).min(plan.keys.len());
        let (key, class) = (random.index(known), random.index(plan.classes.len()));
        let crowd = self.scenario.crowd;
        let [leaves, given_back, trouble, settled] = self.scenario.moods;
        let cost = |random: &mut Random| Cost::new(random.small(1..6)).unwrap_or(Cost::ONE);
        Passage {
            origin,
            key,
            class,
            cost: if random.chance(crowd.costly) {
                cost(random)
            } else {
                Cost::ONE
            },
            max_wait: random.chance(crowd.hurried).then(|| random.millis(0..500)),
            leaves_after: random.chance(leaves).then(|| random.millis(0..300)),
            takes: if random.chance(given_back) {
                Duration::ZERO
            } else {
                random.millis(0..crowd.takes)
            },
            status: if random.chance(trouble) { 503 } else { 200 },
            settled: (crowd.costly > 0 && random.chance(settled)).then(|| cost(random)),
        }
    }
}

/// Sends a request: its task joins the gate, waits and departs, on the gateway's host.
fn send(world: &Rc<World>, invariants: &Rc<Invariants>, gateway: &Rc<Gateway>, passage: Passage) {
    let (world_there, invariants) = (Rc::clone(world), Rc::clone(invariants));
    let gateway_there = Rc::clone(gateway);
    world.spawn(gateway.host, async move {
        let (world, gateway) = (world_there, gateway_there);
        let Some(gate) = gateway.gate(passage.origin) else {
            return;
        };
        let scenario = &gateway.scenario;
        let plan = &scenario.origins[passage.origin];
        let share = || plan.share(passage.key, passage.class);
        let request = invariants.arrives(&gateway, &passage);
        let limits = WaitLimits {
            queue_timeout: plan.queue_timeout,
            hold: Duration::ZERO,
            max_wait: passage.max_wait,
        };
        let permit = match gate.join(
            plan.is_fair,
            share,
            passage.cost,
            &limits,
            true,
            Duration::ZERO,
        ) {
            Err(rejection) => return invariants.rejected_at_gate(&request, &rejection),
            Ok(Admission::Passed(permit)) => permit,
            Ok(Admission::Waiting(waiting)) => {
                let pacer = Pacer::here();
                let permit = waiting.wait(limits, &pacer);
                match within_patience(&world, permit, passage.leaves_after).await {
                    None => return invariants.leaves_gate(&request),
                    Some(Ok(permit)) => permit,
                    Some(Err(WaitError::Rejected(rejection))) => {
                        return invariants.rejected_at_gate(&request, &rejection);
                    }
                    Some(Err(WaitError::Outage(error))) => {
                        return world.fail(format_args!("an outage: {error}"));
                    }
                }
            }
        };
        invariants.passes(&request, &gateway);
        let shed = scenario.crowd.shed.filter(|shed| {
            let during = shed.from..shed.until;
            shed.gateway == gateway.number && during.contains(&world.now())
        });
        world.sleep(passage.takes).await;
        let status = shed.map_or(passage.status, |_| 503);
        permit.answered(status, || Ok(None));
        if let Some(cost) = passage.settled {
            permit.settle(cost);
        }
    });
}
