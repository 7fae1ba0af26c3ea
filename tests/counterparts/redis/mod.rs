//! Limits, gates, rooms and permits in a real Redis.

mod goldens;
mod incidents;
#[allow(dead_code, reason = "tests of the target `long` use the rest")]
pub mod shared;
mod state;
mod store;
mod store_panel;

/// The count, the size or the duration of a test: less here than in the target `long`, which has the same tests.
fn day_or_night<T>(by_day: T, _by_night: T) -> T {
    by_day
}
