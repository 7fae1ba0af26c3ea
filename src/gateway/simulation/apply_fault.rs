//! Applies a fault to the network, the store and the gateways.
//!
//! `scenario` draws the faults of a seed.

use std::time::Duration;

use super::clock::Skew;
use super::gateway::Gateway;
use super::run::Simulation;
use super::scenario::Fault;
use super::store::StoreState;

/// Applies a fault, until it is over.
pub(super) async fn apply_fault(simulation: &Simulation, fault: Fault) {
    let Simulation {
        world,
        scenario,
        store,
        network,
        invariants,
        gateways,
        ..
    } = simulation;
    let find = |gateway: usize| gateways.borrow()[gateway].clone();
    world.note(format_args!("{fault:?}"));
    match fault {
        Fault::Retune {
            gateway,
            zone,
            rate,
        } => find(gateway).retune(zone, rate),
        Fault::RetuneOrigin {
            gateway,
            origin,
            rate,
        } => find(gateway).retune_origin(world, origin, rate),
        Fault::Forget { gateway, zone } => {
            let key = scenario.zones[zone].keys[0];
            invariants.store_forgot();
            find(gateway).forget(zone, key).await;
            // Time until the store has forgotten the key.
            world.sleep(scenario.timeout).await;
            invariants.store_forgot();
        }
        Fault::Slow {
            gateway,
            more,
            loss,
            lasts,
        } => {
            let (link, (least, most)) = (network.link(gateway), scenario.delay);
            link.set_delay(least + more, most + more);
            link.loss.set(loss);
            world.sleep(lasts).await;
            link.set_delay(least, most);
            link.loss.set(0);
        }
        Fault::Partition { gateway, lasts } => {
            network.link(gateway).blocked_until.set(world.now() + lasts);
        }
        Fault::Island { lasts } => {
            for link in network.links() {
                link.blocked_until.set(world.now() + lasts);
            }
        }
        Fault::Reset { gateway } => network.link(gateway).reset(),
        Fault::Busy { takes, lasts } => {
            store.takes.set(takes);
            world.sleep(lasts).await;
            store.takes.set(Duration::ZERO);
        }
        Fault::Death { lasts, loads } => {
            store.state.set(StoreState::Dead);
            reset_all(simulation);
            world.sleep(lasts).await;
            store.start_empty();
            store.state.set(StoreState::Loading);
            world.sleep(loads).await;
            store.state.set(StoreState::Works);
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
            gateway,
            lasts,
            clock,
        } => crash(simulation, gateway, lasts, clock).await,
        Fault::Stop { gateway, lasts } => {
            let host = find(gateway).host;
            world.stop(host, true);
            world.sleep(lasts).await;
            world.stop(host, false);
        }
        Fault::RetuneAll { most } => {
            let origin = &scenario.origins[0];
            origin.max_in_flight.set(Some(most));
            for gateway in gateways.borrow().iter() {
                gateway.retune_origin(world, 0, origin.rate);
            }
        }
    }
}

/// Kills a gateway, and starts it again after a while.
async fn crash(simulation: &Simulation, number: usize, lasts: Duration, clock: Skew) {
    let world = &simulation.world;
    let kill = || {
        let host = simulation.gateways.borrow()[number].host;
        simulation.invariants.died(number, host);
        world.kill(host);
    };
    kill();
    simulation.network.link(number).reset();
    world.sleep(lasts).await;
    // Another fault may have started a gateway in its place meanwhile.
    kill();
    let successor = Gateway::start(world, &simulation.scenario, number, clock);
    simulation.gateways.borrow_mut()[number] = successor;
}

/// Ends all connections to the store.
fn reset_all(simulation: &Simulation) {
    for link in simulation.network.links() {
        link.reset();
    }
}
