//! Tests of shared permits together with a shared rate: a request needs both at once.

use crate::programs::redis::Redis;
use crate::redis::shared::permits::{busy, pass};
use crate::support::{Counting, Gateway, best_of_three, eventually, half_alone, now};

/// Permits, gateways, busy gateways, clients of each, requests per second, and ms of a request.
///
/// Requests use at most two thirds of the permits, so the whole rate can leave.
const CASES: [[u32; 6]; 7] = [
    [1, 2, 2, 3, 10, 30],
    // The permits are idle, or busy, for most of the time.
    [2, 3, 3, 3, 20, 20],
    [2, 3, 3, 3, 20, 50],
    [2, 6, 6, 3, 50, 10],
    // Slots come more often than a permit can change the gateway, so a holder uses it repeatedly.
    [1, 2, 2, 3, 100, 2],
    // An idle gateway keeps no permit from gateways with waiting requests.
    [2, 4, 1, 4, 40, 25],
    [2, 4, 2, 4, 40, 25],
];

#[test]
fn few_permits_pass_the_whole_rate() {
    let _half = half_alone();
    for case in CASES {
        let [permits, gateways, busy_ones, clients, rate, takes] = case;
        best_of_three(|_| {
            let (app, redis) = (Counting::start(), Redis::start());
            let gate = format!("max_in_flight = {permits}\nrate = \"{rate}r/s\"");
            let text = app.file(&redis, &gate);
            let all: Vec<_> = (0..gateways).map(|_| Gateway::start(&text)).collect();
            let crowds = all.iter().take(busy_ones as usize);
            let crowds: Vec<_> = crowds.map(|it| (it, clients as usize)).collect();
            let left = busy(&crowds, &format!("/{takes}"), || {
                eventually("a request leaves", || app.all() > 0);
                pass(1000);
                let (before, began) = (app.all(), now());
                pass(5000);
                #[expect(clippy::cast_precision_loss, reason = "they are few")]
                let left = (app.all() - before) as f64;
                left / began.elapsed().as_secs_f64()
            });
            assert!(app.most() <= permits as usize, "{} at once", app.most());
            println!("{case:?}: {left:.1} of {rate} a second");
            let part = left / f64::from(rate);
            assert!(part <= 1.02, "{case:?}: {left:.1} of {rate} a second left");
            if part >= 0.95 {
                return Ok(());
            }
            Err(format!("{case:?}: {left:.1} of {rate} a second left"))
        });
    }
}
