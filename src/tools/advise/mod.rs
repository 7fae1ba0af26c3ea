//! Suggests a rate and burst that fit the traffic of a log: `drip advise`.
//!
//! A [`Survey`] reads the log once, counts the requests of each key, and stores the time and key of each request in
//! a temporary file.
//!
//! That file is replayed to count each key's requests in windows of 1 s, 10 s and 1 min. The rate is the most
//! requests of one key in the widest window that the log is long enough for. The burst is the highest level that
//! these requests reach at that rate, by the arithmetic of [`limit`], so none of them is rejected.
//!
//! The same is done without the key that made most requests. If it made more than all others, these numbers are
//! recommended.
//!
//! For the gate in front of the origin it counts how many requests come in each second, and how
//! many are at the origin at once, where the log tells how long requests took.
//!
//! Memory is bounded for any log: by the number of keys that are known at once and by the number of
//! lines that are held back to put them into order.

mod advice;
mod enough;
mod file;
mod fit;
mod gate;
mod group;
mod keys;
mod order;
mod origin_load;
mod paste;
mod read;
mod report;
mod spool;
mod survey;

#[cfg(test)]
mod properties;

pub use advice::Advice;
pub use file::file;
pub use paste::toml;
pub use read::read;
pub use report::report;
pub use survey::Survey;

/// Maximum number of keys known at once. Beyond it, the least recently used key is forgotten.
pub const MAX_KEYS: usize = 1 << 20;
