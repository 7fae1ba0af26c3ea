//! Steps and results of an experiment of [`find`](limit::find), as text and TOML.
//!
//! `admin::find` has their JSON.

mod conclusion;
mod fragment;
mod line;
#[cfg(test)]
mod tests;

pub use conclusion::{abort_reason, conclusion, ending, held_back};
pub use fragment::{ConfiguredLimits, Facts, fragment};
pub use line::line;
