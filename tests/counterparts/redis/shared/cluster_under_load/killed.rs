//! Tests of a cluster whose master is killed under load.

use crate::redis::shared::cluster_under_load::load::check_takeover;

/// A master is killed under load, its replica takes over, and the old master returns as a replica.
#[test]
fn a_master_is_killed_and_its_replica_goes_on_with_its_keys() {
    check_takeover(
        "killed",
        |cluster| cluster.nodes[0].redis.borrow_mut().kill(),
        |cluster| cluster.nodes[0].redis.borrow_mut().restart(),
    );
}
