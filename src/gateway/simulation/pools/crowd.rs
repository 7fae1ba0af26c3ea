//! Simulated clients of an origin with shared permits: they join, wait or leave.
//!
//! A permit is the right to run one request at the origin. Gateways share the permits through the
//! store.

use std::rc::Rc;
use std::time::Duration;

use limit::{Cost, Share, WaitLimits};
use tokio::sync::oneshot;

use super::run::Pool;
use crate::gate::{Admission, KeyAtGate};
use crate::simulation::client::within_patience;
use crate::simulation::random::Random;
use crate::simulation::world::HostId;
use crate::time::pacer::Pacer;

impl Pool {
    /// Runs a client of a gateway that sends requests until the scenario ends.
    ///
    /// It runs on no gateway's host: if the gateway dies, the client uses the next one.
    pub(super) async fn client(self: Rc<Self>, gateway: usize, mut random: Random) {
        let world = &self.simulation.world;
        world.sleep(random.millis(1..50)).await;
        while world.now() < self.simulation.scenario.lasts {
            let there = self.gateway(gateway);
            let (pool, random_there) = (Rc::clone(&self), random.fork());
            let (ends, ended) = oneshot::channel::<()>();
            world.spawn(there.host, async move {
                pool.send_request(gateway, random_there).await;
                drop(ends);
            });
            // The request is done, or its gateway has died.
            let _closed = ended.await;
            world.sleep(random.millis(0..2)).await;
            if self.plan.rests > 0 {
                world.sleep(random.millis(0..self.plan.rests)).await;
            }
        }
    }

    /// Sends one request, and stays until it ends.
    async fn send_request(self: &Rc<Self>, gateway: usize, mut random: Random) {
        let world = &self.simulation.world;
        let there = self.gateway(gateway);
        let Some(gate) = there.gate(0) else {
            return;
        };
        let leaves = random
            .chance(self.plan.leave)
            .then(|| random.millis(0..2000));
        let takes = self.draw_duration(&mut random);
        let limits = WaitLimits {
            queue_timeout: Duration::from_mins(60),
            hold: Duration::ZERO,
            max_wait: None,
        };
        let share = || Share::of(KeyAtGate::default());
        let permit = match gate.join(false, share, Cost::ONE, &limits, true, Duration::ZERO) {
            Err(_) => return,
            Ok(Admission::Passed(permit)) => permit,
            Ok(Admission::Waiting(waiting)) => {
                let (waits, since) = (self.origin.waits(gateway), world.now());
                let pacer = Pacer::here();
                let permit = within_patience(world, waiting.wait(limits, &pacer), leaves).await;
                drop(waits);
                self.note_wait(gateway, world.now().checked_sub(since).unwrap());
                match permit {
                    Some(Ok(permit)) => permit,
                    None | Some(Err(_)) => return,
                }
            }
        };
        if !self.simulation.scenario.faults.is_empty() && random.chance(20) {
            // The request has to connect.
            let _connects = self.origin.connects(gateway);
            world.sleep(random.millis(0..20)).await;
        }
        if !permit.may_start() {
            return;
        }
        if there
            .permits()
            .is_some_and(|permits| permits.alone.is_some())
        {
            self.origin.may_exceed();
        }
        self.origin.starts(gateway, takes);
        world.sleep(takes).await;
        drop(permit);
    }

    /// Draws the time of a request at the origin.
    fn draw_duration(&self, random: &mut Random) -> Duration {
        if random.chance(self.plan.long) {
            let orphan = u64::try_from(self.orphan().as_millis()).unwrap_or(1);
            // The time to connect counts too.
            return random.millis(1..orphan - 30);
        }
        random.millis(self.plan.takes.0..self.plan.takes.1)
    }

    /// Starts the clients of all gateways.
    pub(super) fn crowd(self: &Rc<Self>, random: &mut Random) {
        for (gateway, clients) in self.plan.clients.iter().enumerate() {
            for _ in 0..*clients {
                let client = Rc::clone(self).client(gateway, random.fork());
                self.simulation.world.spawn(HostId::FIRST, client);
            }
        }
    }
}
