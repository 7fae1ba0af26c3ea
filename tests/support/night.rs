//! Number of repetitions of a test: few in an everyday run, all by night (`DRIP_LONG=1`).

use std::env;
use std::hash::{BuildHasher, RandomState};

/// Returns whether this is a long run.
pub fn is_night() -> bool {
    env::var_os("DRIP_LONG").is_some_and(|value| value != "0")
}

/// Returns a count, size or duration: the first in everyday runs, the second by night.
pub fn day_or_night<T>(by_day: T, by_night: T) -> T {
    if is_night() { by_night } else { by_day }
}

/// Returns one of `parts` items of a list, different ones in each run. By night all items.
pub fn some_of<T>(items: impl IntoIterator<Item = T>, parts: u64) -> impl Iterator<Item = T> {
    let parts = if is_night() { 1 } else { parts };
    let first = RandomState::new().hash_one(0) % parts;
    println!("item {first} and each {parts}. item from there on");
    let step = usize::try_from(parts).expect("few parts");
    let first = usize::try_from(first).expect("few parts");
    items.into_iter().skip(first).step_by(step)
}
