use std::time::Duration;

use crate::shared::cluster_under_load::load::{BACK_WITHIN, Scene, span};
use crate::support::{alone, best_of_three, now};

/// A master dies under load, and its replica takes over. The old one comes back as a replica.
#[test]
fn a_master_is_killed_and_its_replica_goes_on_with_its_keys() {
    let _machine = alone();
    best_of_three(|_| {
        let scene = Scene::new();
        let cluster = &scene.cluster;
        let mut spans = Vec::new();
        let mut took = Duration::ZERO;
        let seen = scene.under_load(|| {
            span(Duration::from_millis(500));
            spans.push(span(Duration::from_millis(1200)));
            let killed = now();
            cluster.nodes[0].redis.borrow_mut().kill();
            cluster.wait_for_takeover(0);
            took = killed.elapsed();
            span(BACK_WITHIN);
            spans.push((killed, now()));
            spans.push(span(Duration::from_secs(2)));
            cluster.nodes[0].redis.borrow_mut().restart();
            cluster.wait_until("the old master is a replica", |cluster| {
                !cluster.nodes[0].is_master() && cluster.is_whole()
            });
            spans.push(span(Duration::from_millis(1500)));
        });
        seen.tell(&format!("with a master killed, taken over after {took:?}"));
        seen.check_answers(true)?;
        scene.check_outage(&seen, spans[..3].try_into().expect("three spans"))?;
        seen.check_limit(spans[3], 1.0, 1.0)?;
        seen.check_pace(spans[3], 0.05)
    });
}
