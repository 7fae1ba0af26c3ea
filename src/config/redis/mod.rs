//! Redis in the configuration: its URL, and the rates that its scripts can count exactly.

mod pace;
mod url;

pub use pace::{StoreRate, UnsupportedRate, double, ticks, whole_micros};
pub use url::{RedisUrlError, Servers, Url};
