//! Suggests a rate and burst that fit the traffic of a log: `drip advise`.
//!
//! A [`Survey`] reads the log once. It counts each key's requests in windows of a second, 100 ms
//! and 10 ms, and stores the time and key of each request.
//!
//! The rate is the most requests of one key in a second of the good hours. If no key came twice in
//! a second, a rate a minute is used. The burst is the highest level that these requests reach at
//! that rate, by the arithmetic of [`crate::limit`]. Then the whole log is replayed under these
//! numbers and under their neighbours.
//!
//! If a few keys come several times as fast as all others, the numbers are made without them.
//!
//! The keys of each plan are judged on their own, by the same rules. What is said of the zone is of
//! the keys without a plan.
//!
//! For the gate in front of the origin it counts how many requests come in each second, and how
//! many are at the origin at once, where the log tells how long requests took.
//!
//! Memory is bounded for any log: by the number of keys that are known at once and by the number of
//! lines that are held back to put them into order. Temporary files hold the rest.

mod advice;
mod enough;
mod file;
mod gate;
mod group;
mod hours;
mod keys;
mod origin_load;
mod outliers;
mod pace;
mod paste;
mod picture;
mod plan_source;
mod plans;
mod read;
mod report;
mod seconds;
mod spool;
mod survey;
mod trial;
mod windows;

#[cfg(test)]
mod properties;

pub use advice::Advice;
pub use file::file;
pub use group::Resolution;
pub use hours::{Class, Hours, Span, SpanError};
pub use keys::Peaks;
pub use paste::toml;
pub use picture::picture;
pub use read::{Log, Reading, read};
pub use report::report;
pub use survey::Survey;
pub use trial::{Candidate, Trial};

/// Maximum number of keys known at once. Beyond it, the least recently used key is forgotten.
pub const MAX_KEYS: usize = 1 << 20;
