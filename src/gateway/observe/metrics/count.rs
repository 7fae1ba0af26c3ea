//! Counts that all threads add to, without waiting for each other.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// Number of shards. With more workers than this, some share a shard.
const SHARDS: usize = 8;

/// One value for each of a few groups of threads, each in cache lines of its own.
///
/// Workers that write to the same cache line for each request wait for each other. With two workers
/// this is hardly measurable; it grows with their number. A shard takes no memory before a thread
/// of its group uses it: a server whose requests all succeed has many counts that stay zero.
#[derive(Debug, Default)]
pub struct Sharded<T>([OnceLock<Box<Shard<T>>>; SHARDS]);

/// Aligned to two cache lines, because processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard<T>(T);

impl<T> Sharded<T> {
    /// Creates shards without values.
    pub const fn new() -> Self {
        Self([const { OnceLock::new() }; SHARDS])
    }
}

impl<T: Default> Sharded<T> {
    /// Returns the value of this thread.
    pub fn here(&self) -> &T {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            /// Index of the shard of this thread.
            static HERE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
        }
        let shard = &self.0[HERE.with(|here| *here)];
        &shard.get_or_init(Box::default).0
    }

    /// Returns the values of all groups of which a thread has used its value.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0
            .iter()
            .filter_map(OnceLock::get)
            .map(|shard| &shard.0)
    }
}

/// A number that threads add to.
#[derive(Debug, Default)]
pub struct Count(Sharded<AtomicU64>);

impl Count {
    /// Adds `more`.
    pub fn add(&self, more: u64) {
        self.0.here().fetch_add(more, Ordering::Relaxed);
    }

    /// Returns the number so far.
    pub fn get(&self) -> u64 {
        let counts = self.0.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// A number that rises and falls.
#[derive(Debug, Default)]
pub struct Level(AtomicI64);

impl Level {
    /// Replaces `before` in the sum by `after`.
    #[expect(clippy::cast_possible_wrap, reason = "nothing here is that large")]
    pub fn change(&self, before: usize, after: usize) {
        if before != after {
            self.0
                .fetch_add(after as i64 - before as i64, Ordering::Relaxed);
        }
    }

    /// Returns the present number.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn additions_of_all_threads_are_counted() {
        let count = Arc::new(Count::default());
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let count = Arc::clone(&count);
                std::thread::spawn(move || {
                    for _ in 0..1000 {
                        count.add(3);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.get(), 60_000);
    }
}
