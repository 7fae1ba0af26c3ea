use std::time::Duration;

use crate::shared::cluster_under_load::load::{BACK_WITHIN, Scene, span};
use crate::shared::cluster_under_load::nodes::GATEWAYS;
use crate::support::{alone, best_of_three, now};

/// Gateways no longer reach a master that the other nodes reach, so no replica takes over.
#[test]
fn gateways_that_are_split_from_a_master_go_on_alone() {
    let _machine = alone();
    best_of_three(|_| {
        let scene = Scene::new();
        let cluster = &scene.cluster;
        let mut spans = Vec::new();
        let seen = scene.under_load(|| {
            span(Duration::from_millis(700));
            spans.push(span(Duration::from_millis(1500)));
            let split = now();
            cluster.split_from_clients(0, GATEWAYS);
            span(Duration::from_secs(4));
            cluster.heal();
            span(BACK_WITHIN);
            spans.push((split, now()));
            spans.push(span(Duration::from_millis(2000)));
        });
        seen.tell("with gateways split from a master");
        seen.check_answers(true)?;
        scene.check_outage(&seen, spans.try_into().expect("three spans"))
    });
}

/// A master is alone on its side of the network, with the gateways: they still reach it, and it is of no use any more.
#[test]
fn a_master_that_is_split_from_the_other_nodes_is_left_for_its_replica() {
    let _machine = alone();
    best_of_three(|_| {
        let scene = Scene::new();
        let cluster = &scene.cluster;
        let mut spans = Vec::new();
        let mut took = Duration::ZERO;
        let seen = scene.under_load(|| {
            span(Duration::from_millis(700));
            spans.push(span(Duration::from_millis(1500)));
            let split = now();
            cluster.split_from_nodes(0);
            cluster.wait_for_takeover(0);
            took = split.elapsed();
            span(BACK_WITHIN);
            spans.push((split, now()));
            spans.push(span(Duration::from_millis(2000)));
            cluster.heal();
            cluster.wait_until("the old master is a replica", |cluster| {
                !cluster.nodes[0].is_master() && cluster.is_whole()
            });
            spans.push(span(Duration::from_millis(1500)));
        });
        seen.tell(&format!(
            "with a master split from the others, taken over after {took:?}"
        ));
        seen.check_answers(true)?;
        scene.check_outage(&seen, spans[..3].try_into().expect("three spans"))?;
        seen.check_limit(spans[3], 1.0, 1.0)?;
        seen.check_pace(spans[3], 0.05)
    });
}
