//! Which tests may load the machine, or measure closely, at the same time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::now;

/// How many tests with light loads run at a time.
const PARTS: usize = 4;

static FREE: Mutex<usize> = Mutex::new(PARTS);
static FREED: Condvar = Condvar::new();

/// A part of the machine. Others have it once this is dropped, also if the test fails.
#[derive(Debug)]
pub struct Part(usize);

/// Held by tests that measure closely and by tests that load both cores, because they disturb each other.
pub fn alone() -> Part {
    Part::of(PARTS)
}

/// Held by tests whose load takes about half a core, and whose bounds hold beside one more such load.
pub fn half_alone() -> Part {
    Part::of(PARTS / 2)
}

/// Held by tests that wait most of the time, and whose bounds hold beside three more such tests.
pub fn quarter_alone() -> Part {
    Part::of(1)
}

impl Part {
    fn of(parts: usize) -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = FREED.wait_while(free, |free| *free < parts);
        *waited.unwrap_or_else(PoisonError::into_inner) -= parts;
        Self(parts)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.0;
        FREED.notify_all();
    }
}

/// Measures how late the machine wakes a thread, until [`Lateness::end`].
#[derive(Debug)]
pub struct Lateness {
    is_over: Arc<AtomicBool>,
    observer: JoinHandle<Vec<Duration>>,
}

impl Lateness {
    /// From now on.
    pub fn observe() -> Self {
        const SLEEP: Duration = Duration::from_millis(5);
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let observer = thread::spawn(move || {
            let mut late = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let began = now();
                thread::sleep(SLEEP);
                late.push(began.elapsed().saturating_sub(SLEEP));
            }
            late
        });
        Self { is_over, observer }
    }

    /// Ends it. Returns the 99th percentile.
    pub fn end(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        let mut late = self.observer.join().expect("no panic");
        late.sort_unstable();
        let nth = late.len() * 99 / 100;
        late.get(nth).copied().unwrap_or_default()
    }
}
