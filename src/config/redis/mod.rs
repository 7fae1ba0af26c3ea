//! What is known of Redis before it is asked: its address, and whether its scripts count a rate exactly.

mod pace;
mod url;

pub use pace::{Pace, UnsupportedRate, double, ticks, whole_micros};
pub use url::{BadUrl, Place, Url};
