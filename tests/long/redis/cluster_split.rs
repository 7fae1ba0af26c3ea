//! Tests of a cluster whose nodes and gateways are split from each other, under load.

use std::thread;
use std::time::Duration;

use crate::redis::shared::cluster::load::{
    BACK_WITHIN, BURST, BURSTS, RATE, Scene, check_takeover, span,
};
use crate::redis::shared::cluster::nodes::{Cluster, GATEWAYS, Node};
use crate::support::{Gateway, best_of_three, half_alone, now};

/// Gateways that cannot reach a master continue alone. Other nodes reach it: no replica takes over.
#[test]
fn gateways_that_are_split_from_a_master_go_on_alone() {
    let _machine = half_alone();
    best_of_three(|_| {
        let scene = Scene::new("");
        let cluster = &scene.cluster;
        let mut spans = Vec::new();
        let seen = scene.under_load(|| {
            span(Duration::from_millis(500));
            spans.push(span(Duration::from_millis(1200)));
            let split = now();
            cluster.split_from_clients(0, GATEWAYS);
            span(Duration::from_secs(3));
            cluster.heal();
            span(BACK_WITHIN);
            spans.push((split, now()));
            spans.push(span(Duration::from_secs(2)));
        });
        seen.print("with gateways split from a master");
        seen.check_answers(true)?;
        scene.check_outage(&seen, spans.try_into().expect("three spans"))
    });
}

/// Gateways leave a master that is split from the other nodes, although they still reach it.
#[test]
fn a_master_that_is_split_from_the_other_nodes_is_left_for_its_replica() {
    check_takeover(
        "split from the others",
        |cluster| cluster.split_from_nodes(0),
        Cluster::heal,
    );
}

/// A silent replica disturbs neither a gateway that knows all nodes nor one that starts.
#[test]
fn a_gateway_that_is_split_from_a_replica_starts_and_shares_its_keys() {
    let scene = Scene::new("");
    // Nodes report a replica only after it has received data.
    let _seen = scene.under_load(|| {
        let print = |cluster: &Cluster| cluster.nodes.iter().all(Node::lists_replicas);
        scene.cluster.wait_until("nodes tell of replicas", print);
    });
    scene.cluster.split_from_clients(3, GATEWAYS);
    let third = scene.another_gateway();
    // The replica counts as up until the gateway's first attempt has timed out.
    thread::sleep(Duration::from_millis(2500));
    scene
        .cluster
        .wait_until("the third gateway has the store", |_| {
            third.count("drip_store_up", &[]) == 1
        });
    best_of_three(|attempt| {
        let began = now();
        let passed = |gateway: &Gateway| {
            let ask = |_| gateway.fetch(&format!("{BURSTS}?key=own{attempt}")).status;
            (0..12).map(ask).filter(|status| *status == 200).count()
        };
        let all = passed(&scene.gateways[0]) + passed(&third);
        let all = f64::from(u32::try_from(all).expect("few"));
        let most = 1.0 + BURST + RATE * began.elapsed().as_secs_f64();
        if all > most {
            return Err(format!("{all} passed, not {most}"));
        }
        Ok(())
    });
}
