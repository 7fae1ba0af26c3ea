//! The grid in a cluster: it is one key, which moves with its slot and is lost for a moment with its master.

use crate::shared::cluster_under_load::nodes::Cluster;
use crate::support::{Gateway, Origin, best_of_three, eventually, half_alone};

use super::{
    Crowd, busy, check_rate, check_windows, file, gauge, millis, pass, rate_of, shared, within,
};

const RATE: f64 = 200.0;
/// The grid's name in Redis.
const GRID: &str = "drip:gate:app.2";

/// A cluster, two gateways that share a gate in it, and an origin.
struct Scene {
    origin: Origin,
    cluster: Cluster,
    gateways: [Gateway; 2],
}

impl Scene {
    fn new() -> Self {
        let (origin, cluster) = (Origin::start(), Cluster::start());
        let text = file(&origin, &cluster.url(), &shared("200r/s"));
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

    fn crowds(&self) -> [Crowd; 3] {
        let [one, other] = &self.gateways;
        [
            Crowd::of(one, "/?key=a", 20),
            Crowd::of(one, "/?key=b", 10),
            Crowd::of(other, "/?key=c", 20),
        ]
    }

    fn all_have(&self, name: &str, value: f64) -> bool {
        let has = |gateway| gauge(gateway, name) == Some(value);
        self.gateways.iter().all(has)
    }
}

#[test]
fn a_grid_moves_to_another_node_and_nobody_notices() {
    let _machine = half_alone();
    best_of_three(|_| {
        let scene = Scene::new();
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
        check_rate(&moments, span, RATE)?;
        check_windows(&moments, RATE, millis(15))?;
        // It was as hard as it should be.
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

#[test]
fn without_the_master_of_its_grid_each_goes_on_with_its_part_until_the_replica_has_it() {
    let _machine = half_alone();
    best_of_three(|_| {
        let scene = Scene::new();
        let cluster = &scene.cluster;
        let (_, master) = cluster.slot_of(GRID);
        let (all, alone, after) = busy(&scene.crowds(), || {
            let began = pass(millis(1000)).0;
            cluster.nodes[master].redis.borrow_mut().kill();
            pass(millis(500));
            let alone = pass(millis(1000));
            assert!(scene.all_have("drip_origin_shared", 0.0));
            assert!(scene.all_have("drip_origin_part", 0.5));
            cluster.wait_for_takeover(master);
            eventually("they share again", || {
                scene.all_have("drip_origin_shared", 1.0)
            });
            pass(millis(300));
            let after = pass(millis(1500));
            ((began, after.1), alone, after)
        });
        check_rate(&within(&scene.origin, "key=", alone), alone, RATE)?;
        let of_other = rate_of(&within(&scene.origin, "key=c", alone), alone);
        if (of_other - RATE / 2.0).abs() > 4.0 {
            return Err(format!("one had {of_other:.1}r/s alone"));
        }
        check_rate(&within(&scene.origin, "key=", after), after, RATE)?;
        // Alone, both may send in the same moment; a span of old slots may meet the new ones.
        check_windows(&within(&scene.origin, "key=", all), RATE, millis(80))
    });
}
