//! Redis in the configuration: its URL, and the rates that its scripts can count exactly.

mod pace;
mod url;

/// Converts a whole number to the double that the scripts use: exact below 2^53.
pub use limit::to_float as double;
pub use pace::{StoreRate, ticks, whole_micros};
pub use url::{Servers, Url};
