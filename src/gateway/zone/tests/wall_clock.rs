//! Tests of calendar windows after a step of the wall clock.

use limit::Algorithm;

use super::*;
use crate::time::simulated::step_wall;

/// Length of a day in seconds.
const DAY: u64 = 86_400;

/// Returns the time until a key of `5r/d` without remaining requests is accepted again.
async fn retry_after(bench: &Bench) -> Duration {
    loop {
        let mut joining = bench.joined("a", burst(4)).await;
        match peek(&mut joining).await.expect("an answer") {
            Ok(admission) => drop(admission.take()),
            Err(rejection) => return rejection.retry_after,
        }
    }
}

#[actix::test]
async fn a_day_ends_at_midnight_of_the_stepped_wall_clock() {
    let settings = config::Zone {
        algorithm: Algorithm::FixedWindow,
        ..settings("5r/d", 10)
    };
    let bench = Bench::with(settings, None);
    // Time until midnight of a wall clock that is ahead by some seconds.
    let left = |ahead: u64| {
        let second = START.as_nanos() / 1_000_000_000 + ahead;
        Duration::from_secs(DAY - second % DAY)
    };
    assert_eq!(retry_after(&bench).await, left(0));
    step_wall(600);
    assert_eq!(retry_after(&bench).await, left(600));
    bench.advance(left(600)).await;
    let mut joining = bench.joined("a", burst(4)).await;
    used(&mut joining).await;
}
