//! Redis as the file configures it: its URL, and which rates its scripts count exactly.

mod pace;
mod url;

pub use pace::{Pace, UnsupportedRate, double, ticks, whole_micros};
pub use url::{BadUrl, Servers, Url};
