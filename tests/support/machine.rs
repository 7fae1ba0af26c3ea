//! Limits how many tests load the machine, or measure closely, at the same time.

use std::sync::{Condvar, Mutex, PoisonError};

/// Number of tests with light loads that run at the same time.
const PARTS: usize = 4;

static FREE: Mutex<usize> = Mutex::new(PARTS);
static FREED: Condvar = Condvar::new();

/// A share of the machine. Dropping it frees the share, also if the test fails.
#[derive(Debug)]
pub struct Part(usize);

/// Reserves the whole machine, for tests that measure closely or load both cores.
pub fn alone() -> Part {
    Part::of(PARTS)
}

/// Reserves half of the machine, for tests that load about half a core.
///
/// The bounds of such a test must hold beside one more such load.
pub fn half_alone() -> Part {
    Part::of(PARTS / 2)
}

/// Reserves a quarter of the machine, for tests that mostly wait.
///
/// The bounds of such a test must hold beside three more such tests.
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
