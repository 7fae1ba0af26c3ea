//! Long tests of a shared rate whose cluster node is lost.

use crate::redis::shared::grid::cluster::{GRID, Scene};
use crate::redis::shared::grid::{busy, check_rate, check_windows, millis, pass, rate_of, within};
use crate::support::{best_of_three, eventually, half_alone};

const RATE: f64 = 200.0;

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
        // Alone, both gateways may send at the same moment. Old slots may overlap with new ones.
        check_windows(&within(&scene.origin, "key=", all), RATE, millis(80))
    });
}
