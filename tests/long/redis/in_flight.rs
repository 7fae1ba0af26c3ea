//! Tests of permits of keys in a Redis cluster.

use std::time::Duration;

use crate::redis::shared::cluster::nodes::Cluster;
use crate::redis::shared::in_flight::text;
use crate::redis::shared::permits::{busy, pass};
use crate::support::{Counting, Gateway, eventually, half_alone};

/// The permits of each key are at the node that has its slot, also while the slot moves.
#[test]
fn the_permits_of_keys_are_spread_over_a_cluster_and_move_with_their_slots() {
    let _machine = half_alone();
    let (app, cluster) = (Counting::start(), Cluster::start());
    // A call for a moving slot may be refused. Then no request starts, and no gateway counts alone.
    let more = "on_store_failure = \"closed\"";
    let text = text(&app, &cluster.url(), more, ", burst = 50, in_flight = 3");
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let name = |key: &str| format!("drip:z:in_flight.1:{key}");
    let nodes: std::collections::BTreeSet<usize> = ["a", "b", "c", "d", "e", "f"]
        .iter()
        .map(|key| {
            let mut runs = gateways[0].ask(&format!("/1000?key={key}"));
            eventually("it runs", || app.here() == 1);
            let (_, node) = cluster.slot_of(&name(key));
            let command = format!("EXISTS {}", name(key));
            assert_eq!(cluster.nodes[node].ask::<i64>(&command), 1, "{key}");
            assert_eq!(runs.answer().status, 200);
            node
        })
        .collect();
    assert!(nodes.len() > 1, "all are at {nodes:?}");
    app.forget_most();
    let (slot, from) = cluster.slot_of(&name("a"));
    busy(&gateways.each_ref().map(|it| (it, 6)), "/40?key=a", || {
        eventually("all are used", || app.here() == 3);
        cluster.move_slot(slot, from, (from + 1) % 3, || pass(500));
        eventually("all are used again", || app.here() == 3);
        // A permit that was lost in the move would be lost for good.
        eventually("three quarters are in use for a second", || {
            app.mean(Duration::from_secs(1)) > 2.2
        });
    });
    assert_eq!(app.most(), 3);
}
