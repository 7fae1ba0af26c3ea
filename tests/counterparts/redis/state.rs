//! Tests of a restart with `state` of a gateway whose zone is in Redis.

#[allow(dead_code, reason = "the tests without Redis use the rest")]
#[path = "../../gateway/state/chain.rs"]
mod chain;
#[path = "../../gateway/state/restart.rs"]
mod restart;

use std::panic::catch_unwind;

use chain::side_by_side;
use restart::check_both_gates;

use crate::programs::redis::Redis;
use crate::support::best_of_three;

#[test]
fn who_comes_to_the_old_gate_from_a_zone_has_a_slot_that_the_new_gate_keeps() {
    // A process without processor time departs late, and the other gateway cannot know.
    best_of_three(|_| {
        let measured = catch_unwind(|| {
            side_by_side(&[true], |is_held, keeps| {
                let redis = Redis::start();
                check_both_gates(*is_held, keeps, Some(&redis.url()));
            });
        });
        measured.map_err(|_| "two streams".to_owned())
    });
}
