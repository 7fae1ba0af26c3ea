//! Restarts under load, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Chain, MS, Rest, excess, gate, side_by_side};
use crate::support::night::day_or_night;
use crate::support::{Client, MARGIN, Origin, best_of_three, gaps, longest_pause, now, one_zone};

/// Restarts under load.
#[derive(Clone, Copy)]
struct Load {
    is_held: bool,
    /// What the clients ask for, in turn.
    targets: &'static [&'static str],
    restarts: u32,
    /// From when one process is ready to the signal that stops it.
    between: Duration,
}

/// The stamps at the origin, and the longest time from a signal to stop until the next process was
/// ready.
fn stamps_under_load(
    load: Load,
    keeps: bool,
    rest: &str,
    origin: &Origin,
) -> (Vec<Instant>, Duration) {
    let chain = Chain::new(load.is_held, keeps, rest);
    let mut old = chain.start();
    let over = Arc::new(AtomicBool::new(false));
    let address = chain.address;
    let crowd: Vec<_> = (0..30)
        .map(|client| {
            let over = Arc::clone(&over);
            let target = load.targets[client % load.targets.len()];
            thread::spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    match Client::try_fetch(address, target).map(|answer| answer.status) {
                        Ok(200) => {}
                        // It would otherwise be a flood.
                        Ok(429 | 503) => thread::sleep(20 * MS),
                        // Nobody listens between two processes.
                        Err(_) if !load.is_held => thread::sleep(20 * MS),
                        other => panic!("{other:?}"),
                    }
                }
            })
        })
        .collect();
    let mut longest = Duration::ZERO;
    for _restart in 0..load.restarts {
        thread::sleep(load.between);
        let began = now();
        old.signal(Signal::TERM);
        old.wait_for_line("stopping");
        let new = chain.start();
        longest = longest.max(began.elapsed());
        assert_eq!(old.wait(Duration::from_secs(20)).code(), Some(0));
        old = new;
    }
    thread::sleep(load.between);
    let stamps = origin.moments("key=");
    over.store(true, Ordering::SeqCst);
    for one in crowd {
        one.join().expect("all are answered");
    }
    Chain::stop(&mut old);
    (stamps, longest)
}

/// Restarts under load keep the bound of 20r/s over all windows, and leave no gap, with `state`;
/// without it they exceed the bound.
fn check_under_load(cases: &[(Load, Rest)]) {
    side_by_side(cases, |(load, rest), keeps| {
        let load = *load;
        if !keeps {
            let origin = Origin::start();
            let rest = rest(&origin);
            let few = Load {
                restarts: 2,
                ..load
            };
            let (stamps, _) = stamps_under_load(few, false, &rest, &origin);
            let without = excess(&stamps, 20.0);
            assert!(
                without > 5.0,
                "without state only {without} beyond the rate"
            );
            return;
        }
        best_of_three(|_| {
            let origin = Origin::start();
            let rest = rest(&origin);
            let (stamps, start_up) = stamps_under_load(load, true, &rest, &origin);
            let ends = stamps.first().zip(stamps.last()).expect("requests");
            let pause = longest_pause(*ends.0, *ends.1);
            // The queue of a second bridges the start, unless that takes longer.
            let bridged = start_up.saturating_sub(800 * MS);
            let gap = gaps(&stamps).into_iter().max().expect("requests");
            // A stamp may be late by a pause of the machine, those behind it not. Threads may pause for
            // longer than was seen: then the stream has a gap as long, which two streams have not.
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

fn load() -> Load {
    Load {
        is_held: true,
        targets: &["/?key=a"],
        restarts: day_or_night(3, 6),
        between: Duration::from_millis(700),
    }
}

/// Half of the clients wait in a zone, whose five keys have 5r/s together, and then at a gate that
/// the others fill.
fn zones_and_gate(origin: &Origin) -> String {
    let gate = gate(origin, "20r/s").replace("queue = 100", "queue = 19");
    format!(
        "{gate}\n[zones.z]\nkey = \"$arg_key\"\nrate = \"1r/s\"\n\n\
         [[routes]]\npath = \"/zone\"\norigin = \"app\"\n\
         limits = [{{ zone = \"z\", burst = 9 }}]\n"
    )
}

const OF_ZONES: &[&str] = &[
    "/?key=free",
    "/zone?key=a",
    "/?key=free",
    "/zone?key=b",
    "/?key=free",
    "/zone?key=c",
    "/?key=free",
    "/zone?key=d",
    "/?key=free",
    "/zone?key=e",
];

#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn restarts_under_load_keep_the_bound_of_a_zone_or_a_gate_in_all_windows() {
    check_under_load(&[
        (load(), |origin| one_zone(origin, "20r/s", "burst = 19")),
        (load(), |origin| {
            gate(origin, "20r/s").replace("queue = 100", "queue = 19")
        }),
    ]);
}

#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn restarts_under_load_keep_the_bound_of_a_gate_behind_zones() {
    let held = Load {
        targets: OF_ZONES,
        restarts: day_or_night(2, 4),
        ..load()
    };
    let own = Load {
        is_held: false,
        ..held
    };
    check_under_load(&[(held, zones_and_gate), (own, zones_and_gate)]);
}
