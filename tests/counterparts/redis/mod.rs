//! Tests of limits, gates, rooms and permits in a real Redis.

mod goldens;
mod incidents;
#[allow(dead_code, reason = "tests of the target `long` use the rest")]
pub mod shared;
mod state;
mod store;
mod store_panel;
