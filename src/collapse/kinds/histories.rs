//! Random histories on a virtual clock, against a naive model.
//!
//! `DRIP_SEEDS=50000` runs so many histories, `DRIP_SEED=42` one.

mod counts;
mod ends;
mod model;
mod world;

use counts::Counts;
use world::World;

/// How many histories run if nobody says how many.
const SEEDS: u64 = 2000;

const STEPS: usize = 120;

/// Says how to run a history that fails again.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(seed) = self;
            eprintln!("Again: DRIP_SEED={seed} cargo test --lib collapse");
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a whole number"))
}

#[test]
fn each_request_gets_one_answer_in_time_and_nobody_waits_for_ever() {
    let one = number("DRIP_SEED");
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 0..number("DRIP_SEEDS").unwrap_or(SEEDS),
    };
    let mut counts = Counts::default();
    for seed in seeds {
        let _seed = Seed(seed);
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.finish();
        counts.add(&world.counts);
    }
    println!("{counts:?}");
    // Each rule has been met often.
    assert!(one.is_some() || counts.least() > 500, "{counts:?}");
}
