//! Tests of a cluster whose slots move under load.

use std::thread;
use std::time::Duration;

use crate::redis::shared::cluster_under_load::load::{Scene, span};
use crate::support::night::day_or_night;
use crate::support::{best_of_three, half_alone, now};

/// Moving slots under load delays or refuses no request, and loses or adds no charge.
///
/// While a slot moves, its node redirects requests to another node (`ASK`, then `MOVED`), which
/// does
/// not know the scripts at first.
#[test]
fn slots_that_move_under_load_change_nothing() {
    best_of_three(|_| {
        let scene = Scene::new();
        let _machine = half_alone();
        let cluster = &scene.cluster;
        let mut moved = 0;
        let mut measured = None;
        let seen = scene.under_load(|| {
            thread::sleep(Duration::from_millis(700));
            let began = now();
            for (_, _, name) in Scene::keys().step_by(day_or_night(3, 1)) {
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
        seen.tell(&format!("with {moved} slots moved"));
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
        if failed > 0 || !scene.are_up() {
            return Err(format!("{failed} operations failed"));
        }
        Ok(())
    });
}
