use std::thread;
use std::time::Duration;

use crate::redis::shared::cluster_under_load::load::{Scene, span};
use crate::support::night::day_or_night;
use crate::support::{best_of_three, half_alone, now};

/// While slots move, a node sends requests for their keys to another one (`ASK`, then `MOVED`), which does not know the
/// scripts at first. Nobody notices: no request is late or refused, and no key loses or gains anything.
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
                // Two or three requests for the key meanwhile.
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
        // It was as hard as it should be.
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
