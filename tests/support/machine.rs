//! Which tests may load the machine, or measure closely, at the same time.

use std::sync::{Condvar, Mutex, PoisonError};

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
