//! How much a test repeats: little in an everyday run, all of it by night (`DRIP_LONG=1`).

use std::env;
use std::hash::{BuildHasher, RandomState};

/// Returns whether this is a long run.
pub fn is_night() -> bool {
    env::var_os("DRIP_LONG").is_some_and(|value| value != "0")
}

/// A count, a size or a duration: one for everyday runs, another for the night.
pub fn day_or_night<T>(by_day: T, by_night: T) -> T {
    if is_night() { by_night } else { by_day }
}

/// One of `parts` items of a list, in each run other ones. By night all items.
pub fn some_of<T>(items: impl IntoIterator<Item = T>, parts: u64) -> impl Iterator<Item = T> {
    let parts = if is_night() { 1 } else { parts };
    let first = RandomState::new().hash_one(0) % parts;
    println!("item {first} and each {parts}. item from there on");
    let step = usize::try_from(parts).expect("few parts");
    let first = usize::try_from(first).expect("few parts");
    items.into_iter().skip(first).step_by(step)
}
