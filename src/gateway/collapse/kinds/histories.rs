//! Random histories of kinds on a virtual clock, compared with a naive model.
//!
//! `tests/testing/search.rs` defines how many run, and how to run more.

mod counts;
mod ends;
mod model;
mod world;

use testing::seeds;

use counts::Counts;
use world::World;

const STEPS: usize = 120;

/// Prints how to repeat a history when it fails.
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
fn each_request_gets_one_answer_in_time() {
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
    // Each event must have happened often.
    let are_often = !seeds.are_many() || counts.least() > seeds.count() / 4;
    assert!(are_often, "{counts:?}");
}
