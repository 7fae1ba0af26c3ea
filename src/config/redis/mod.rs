//! Redis in the configuration: its URL, and the rates that the scripts in it can count exactly.
//!
//! drip decides about shared buckets with Lua scripts that run in Redis. They count in doubles.

mod store_rate;
mod url;

/// Converts a whole number to the double that the scripts use. It is exact below 2^53.
pub use limit::to_float as double;
pub use store_rate::{StoreRate, ticks, whole_micros};
pub use url::{Servers, Url};
