//! Tests of a gate's grid in a cluster: one key, which moves with its slot.
//!
//! The key is lost for a moment if its master is lost.

use crate::redis::shared::cluster_under_load::nodes::Cluster;
use crate::support::{Gateway, Origin, best_of_three, eventually, half_alone};

use super::{
    Crowd, busy, check_rate, check_windows, file, gauge, millis, pass, shared, slack, usual_rate,
    within,
};

/// Name of the grid in Redis.
pub const GRID: &str = "drip:gate:app.2";

/// A cluster, two gateways that share a gate in it, and an origin.
pub struct Scene {
    pub origin: Origin,
    pub cluster: Cluster,
    pub gateways: [Gateway; 2],
}

impl Scene {
    pub fn new() -> Self {
        let (origin, cluster) = (Origin::start(), Cluster::start());
        let text = file(&origin, &cluster.url(), &shared(usual_rate().0));
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        eventually("both are known", || {
            let known = |it| gauge(it, "drip_origin_gateways") == Some(2.0);
            gateways.iter().all(known)
        });
        Self {
            origin,
            cluster,
            gateways,
        }
    }

    pub fn crowds(&self) -> [Crowd; 3] {
        let [one, other] = &self.gateways;
        [
            Crowd::of(one, "/?key=a", 20),
            Crowd::of(one, "/?key=b", 10),
            Crowd::of(other, "/?key=c", 20),
        ]
    }

    pub fn all_have(&self, name: &str, value: f64) -> bool {
        let has = |gateway| gauge(gateway, name) == Some(value);
        self.gateways.iter().all(has)
    }
}

#[test]
fn a_grid_moves_to_another_node_and_nobody_notices() {
    best_of_three(|_| {
        let scene = Scene::new();
        let _machine = half_alone();
        let cluster = &scene.cluster;
        let (slot, from) = cluster.slot_of(GRID);
        let to = (from + 1) % 3;
        let span = busy(&scene.crowds(), || {
            pass(millis(500));
            let began = pass(millis(500)).0;
            cluster.nodes[to].ask::<()>("SCRIPT FLUSH");
            cluster.move_slot(slot, from, to, || {
                pass(millis(500));
            });
            (began, pass(millis(1000)).1)
        });
        let moments = within(&scene.origin, "key=", span);
        check_rate(&moments, span, usual_rate().1)?;
        check_windows(&moments, usual_rate().1, slack())?;
        // Checks that the load caused all of the redirections.
        for code in ["ASK", "MOVED", "NOSCRIPT"] {
            if cluster.nodes.iter().all(|node| node.errors(code) == 0) {
                return Err(format!("no node said {code}"));
            }
        }
        if !scene.all_have("drip_origin_shared", 1.0) {
            return Err("one went on alone".to_owned());
        }
        Ok(())
    });
}
