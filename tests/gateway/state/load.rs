//! Tests of repeated restarts under load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Chain, MS, Rest, excess, gate, side_by_side};
use crate::support::night::day_or_night;
use crate::support::{Client, MARGIN, Origin, best_of_three, gaps, longest_pause, now, one_zone};

/// Time from the readiness of a process to the signal that stops it.
const BETWEEN: Duration = Duration::from_millis(700);

/// Returns arrivals at the origin, and the longest restart.
///
/// A restart lasts from a stop until the next process is ready.
fn stamps_under_load(
    restarts: u32,
    keeps: bool,
    rest: &str,
    origin: &Origin,
) -> (Vec<Instant>, Duration) {
    let chain = Chain::new(true, keeps, rest);
    let mut old = chain.start();
    let over = AtomicBool::new(false);
    let address = chain.address;
    let ask = || {
        while !over.load(Ordering::SeqCst) {
            match Client::try_fetch(address, "/?key=a").map(|answer| answer.status) {
                Ok(200) => {}
                // Without the pause the client would send a flood.
                Ok(429 | 503) => thread::sleep(20 * MS),
                other => panic!("{other:?}"),
            }
        }
    };
    thread::scope(|scope| {
        for _client in 0..30 {
            scope.spawn(ask);
        }
        let mut longest = Duration::ZERO;
        for _restart in 0..restarts {
            thread::sleep(BETWEEN);
            let began = now();
            old.signal(Signal::TERM);
            old.wait_for_line("stopping");
            let new = chain.start();
            longest = longest.max(began.elapsed());
            assert_eq!(old.wait(Duration::from_secs(20)).code(), Some(0));
            old = new;
        }
        thread::sleep(BETWEEN);
        over.store(true, Ordering::SeqCst);
        (origin.moments("key="), longest)
    })
}

/// Restarts under load with `state` keep the limit of 20r/s in all windows and leave no gap.
///
/// Without `state` they exceed the limit.
#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn restarts_under_load_keep_the_bound_of_a_zone_or_a_gate_in_all_windows() {
    let cases: [Rest; 2] = [
        |origin| one_zone(origin, "20r/s", "burst = 19"),
        |origin| gate(origin, "20r/s").replace("queue = 100", "queue = 19"),
    ];
    side_by_side(&cases, |rest, keeps| {
        if !keeps {
            let origin = Origin::start();
            let (stamps, _) = stamps_under_load(2, false, &rest(&origin), &origin);
            let without = excess(&stamps, 20.0);
            assert!(without > 5.0, "without state only {without} beyond");
            return;
        }
        best_of_three(|_| {
            let origin = Origin::start();
            let restarts = day_or_night(3, 6);
            let (stamps, start_up) = stamps_under_load(restarts, true, &rest(&origin), &origin);
            let ends = stamps.first().zip(stamps.last()).expect("requests");
            let pause = longest_pause(*ends.0, *ends.1);
            // The queue of a second bridges the start, unless that takes longer.
            let bridged = start_up.saturating_sub(800 * MS);
            let gap = gaps(&stamps).into_iter().max().expect("requests");
            // An arrival may be late by a pause of the machine, later ones not. Threads may pause
            // for longer than was measured. Then one stream has a gap as long, but two streams have
            // not.
            let late = pause.max(gap.saturating_sub(50 * MS));
            let slack = (MARGIN + late).as_secs_f64() * 20.0;
            let most = excess(&stamps, 20.0);
            eprintln!(
                "{} requests in {:?}: {most:.2} in a window beyond the rate, the longest gap {gap:?}, \
                 the longest start {start_up:?}, the longest pause of the machine {pause:?}",
                stamps.len(),
                *ends.1 - *ends.0,
            );
            if most > 1.0 + slack {
                return Err(format!("{most} in a window beyond the rate"));
            }
            if gap > 100 * MS + MARGIN + pause + bridged {
                return Err(format!("a gap of {gap:?}, with a start of {start_up:?}"));
            }
            Ok(())
        });
    });
}
