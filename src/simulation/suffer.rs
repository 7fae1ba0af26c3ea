//! What a fault does to the network, the store and the gateways.

use std::time::Duration;

use super::clock::Skew;
use super::gateway::Gateway;
use super::run::Simulation;
use super::scenario::Fault;
use super::store::StoreState;

/// Lets a fault happen, until it is over.
pub(super) async fn suffer(simulation: &Simulation, fault: Fault) {
    let Simulation {
        world,
        scenario,
        store,
        network,
        invariants,
        gateways,
        ..
    } = simulation;
    let gateway = |number: usize| gateways.borrow()[number].clone();
    world.note(format_args!("{fault:?}"));
    match fault {
        Fault::Retune {
            gateway: number,
            zone,
            rate,
        } => gateway(number).retune(zone, rate),
        Fault::RetuneOrigin {
            gateway: number,
            origin,
            rate,
        } => gateway(number).retune_origin(world, origin, rate),
        Fault::Forget {
            gateway: number,
            zone,
        } => {
            let key = scenario.zones[zone].keys[0];
            invariants.forgotten();
            gateway(number).forget(zone, key).await;
            // Until the store has done it.
            world.sleep(scenario.timeout).await;
            invariants.forgotten();
        }
        Fault::Slow {
            gateway: number,
            more,
            loss,
            lasts,
        } => {
            let (link, (least, most)) = (network.link(number), scenario.delay);
            link.set_delay(least + more, most + more);
            link.set_loss(loss);
            world.sleep(lasts).await;
            link.set_delay(least, most);
            link.set_loss(0);
        }
        Fault::Partition {
            gateway: number,
            lasts,
        } => network.link(number).block_until(world.now() + lasts),
        Fault::Island { lasts } => {
            for link in network.links() {
                link.block_until(world.now() + lasts);
            }
        }
        Fault::Reset { gateway: number } => network.link(number).reset(),
        Fault::Busy { takes, lasts } => {
            store.set_takes(takes);
            world.sleep(lasts).await;
            store.set_takes(Duration::ZERO);
        }
        Fault::Death { lasts, loads } => {
            store.set_condition(StoreState::Dead);
            reset_all(simulation);
            world.sleep(lasts).await;
            store.flush();
            store.set_condition(StoreState::Loading);
            world.sleep(loads).await;
            store.set_condition(StoreState::Works);
        }
        Fault::Failover { loses, read_only } => {
            let replica = store.snapshot();
            world.sleep(loses).await;
            store.restore(replica);
            store.set_read_only(true);
            reset_all(simulation);
            world.sleep(read_only).await;
            store.set_read_only(false);
        }
        Fault::Flush => store.flush(),
        Fault::Jump { micros } => {
            store.jump(micros);
            invariants.jumped(micros);
        }
        Fault::Crash {
            gateway: number,
            lasts,
            clock,
        } => crash(simulation, number, lasts, clock).await,
    }
}

/// A gateway loses its power, and starts again after a while.
async fn crash(simulation: &Simulation, number: usize, lasts: Duration, clock: Skew) {
    let Simulation {
        world,
        scenario,
        network,
        invariants,
        gateways,
        ..
    } = simulation;
    let kill = || {
        let host = gateways.borrow()[number].host;
        invariants.died(number, host);
        world.kill(host);
    };
    kill();
    network.link(number).reset();
    world.sleep(lasts).await;
    // Another fault may have killed its successor meanwhile, or not.
    kill();
    let anew = Gateway::start(world, scenario, number, clock);
    gateways.borrow_mut()[number] = anew;
}

fn reset_all(simulation: &Simulation) {
    for link in simulation.network.links() {
        link.reset();
    }
}
