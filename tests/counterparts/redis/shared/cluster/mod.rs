//! Tests of a cluster of real Redis servers under the load of two gateways.
//!
//! Slots move, a master is killed, or the network splits.

pub mod load;
pub mod nodes;

use std::thread;
use std::time::Duration;

use crate::support::night::day_or_night;
use crate::support::{best_of_three, half_alone, now};
use load::{GATE, GRID, Scene, check_takeover, span};

/// A master is killed under load, its replica takes over, and the old master returns as a replica.
#[test]
fn a_master_is_killed_and_its_replica_goes_on_with_its_keys() {
    check_takeover(
        "killed",
        |cluster| cluster.nodes[0].redis.borrow_mut().kill(),
        |cluster| cluster.nodes[0].redis.borrow_mut().restart(),
    );
}

/// Moving slots under load delays or refuses no request, and loses or adds no charge.
///
/// While a slot moves, its node redirects requests to another node (`ASK`, then `MOVED`), which
/// does not know the scripts at first. The gates continue to share.
#[test]
fn slots_that_move_under_load_change_nothing() {
    best_of_three(|_| {
        let scene = Scene::new(GATE);
        let _machine = half_alone();
        let cluster = &scene.cluster;
        let mut moved = 0;
        let mut measured = None;
        let seen = scene.under_load(|| {
            thread::sleep(Duration::from_millis(700));
            let began = now();
            let keys = Scene::keys().step_by(day_or_night(3, 1));
            for name in keys.map(|(_, _, name)| name).chain([GRID.to_owned()]) {
                let (slot, from) = cluster.slot_of(&name);
                let to = (from + 1) % 3;
                cluster.nodes[to].ask::<()>("SCRIPT FLUSH");
                // Two or three requests for the key arrive meanwhile.
                cluster.move_slot(slot, from, to, || {
                    thread::sleep(Duration::from_millis(120));
                });
                moved += 1;
            }
            span(Duration::from_secs(1));
            measured = Some((began, now()));
        });
        seen.print(&format!("with {moved} slots moved"));
        seen.check_answers(false)?;
        let measured = measured.expect("it ran");
        seen.check_limit(measured, 1.0, 1.0)?;
        seen.check_pace(measured, 0.05)?;
        // Checks that the load caused all of the redirections.
        for code in ["ASK", "MOVED", "NOSCRIPT"] {
            let count: usize = cluster.nodes.iter().map(|node| node.errors(code)).sum();
            if count < moved / 2 {
                return Err(format!("only {count} times {code}"));
            }
        }
        let failed = scene.failed_operations();
        if failed > 0 || !scene.are_up() || !scene.gates_share() {
            return Err(format!("{failed} operations failed"));
        }
        Ok(())
    });
}
