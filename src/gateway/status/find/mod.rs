//! What the experiment of [`find`](limit::find) has done and found, for people and programs.

mod conclusion;
mod fragment;
mod line;
#[cfg(test)]
mod tests;

pub use conclusion::{abort_reason, conclusion, ending, held_back};
pub use fragment::{Facts, InFile, fragment};
pub use line::line;
