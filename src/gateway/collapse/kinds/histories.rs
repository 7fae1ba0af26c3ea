//! Random histories on a virtual clock, against a naive model.
//!
//! `tests/testing/search.rs` says how many run, and how to run more.

mod counts;
mod ends;
mod model;
mod world;

use testing::seeds;

use counts::Counts;
use world::World;

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

#[test]
fn each_request_gets_one_answer_in_time_and_nobody_waits_for_ever() {
    let seeds = seeds(2000, 50_000);
    let mut counts = Counts::default();
    for seed in seeds.range() {
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
    let are_often = !seeds.are_many() || counts.least() > seeds.count() / 4;
    assert!(are_often, "{counts:?}");
}
