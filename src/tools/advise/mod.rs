//! `drip advise`: recommends a rate and burst that fit the traffic of a log.
//!
//! A [`Survey`] reads the log once, counts the requests of each key, and stores the time and key of
//! each request in a temporary file (`spool`). `order` sorts the requests by time before.
//!
//! `fit` replays the temporary file to count each key's requests in windows of 1 s, 10 s and 1 min.
//! The rate is the maximum of one key in the widest window that the log is long enough for. The
//! burst is the highest level that these requests reach at that rate, by the arithmetic of
//! [`limit`], so none of them is rejected.
//!
//! Another rate and burst are computed without the busiest key. If that key made more requests than
//! all others together, these numbers are recommended.
//!
//! For the gate, the limit in front of the origin, `origin_load` counts the requests per second,
//! and the requests in flight if the log says how long requests took.
//!
//! Memory is bounded for any log: by the number of keys that are remembered, and by the number of
//! lines that are held back for sorting.

mod advice;
mod caution;
mod fit;
mod gate;
mod gateway_toml;
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
pub use gateway_toml::gateway_toml;
pub use paste::toml_to_paste;
pub use read::read;
pub use report::report;
pub use survey::Survey;

/// Maximum number of keys known at once. Beyond it, the least recently used key is forgotten.
pub const MAX_KEYS: usize = 1 << 20;
