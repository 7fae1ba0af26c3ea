//! Tests of calendar windows after a step of the wall clock.

use limit::Algorithm;

use super::*;
use crate::time::simulated::step_wall;

const DAY: u64 = 86_400;

/// Returns the time until a key of `5r/d` without remaining requests is accepted again.
async fn retry_after(bench: &Bench) -> Duration {
    loop {
        let mut joining = bench.join("a", burst(4));
        Bench::settle().await;
        match peek(&mut joining).await.expect("an answer") {
            Ok(turn) => drop(turn.take()),
            Err(rejection) => return rejection.retry_after,
        }
    }
}

#[actix::test]
async fn a_day_ends_at_midnight_of_the_stepped_wall_clock() {
    let (mut settings, mut tuning) = settings("5r/d", 10);
    settings.algorithm = Algorithm::FixedWindow;
    tuning.zone = settings.clone().into();
    let bench = Bench::with((settings, tuning));
    let left = |ahead: u64| {
        let second = START.as_nanos() / 1_000_000_000 + ahead;
        Duration::from_secs(DAY - second % DAY)
    };
    assert_eq!(retry_after(&bench).await, left(0));
    step_wall(600);
    assert_eq!(retry_after(&bench).await, left(600));
    bench.advance(left(600)).await;
    let mut joining = bench.join("a", burst(4));
    Bench::settle().await;
    assert!(matches!(peek(&mut joining).await, Some(Ok(_))));
}
