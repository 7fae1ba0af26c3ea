//! Redis in the configuration: its URL, and the rates that its scripts can count exactly.

mod pace;
mod url;

pub use pace::{StoreRate, double, ticks, whole_micros};
pub use url::{Servers, Url};
