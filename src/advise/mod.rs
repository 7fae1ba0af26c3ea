//! Which rate and burst fit the traffic of a log: `drip advise`.
//!
//! A [`Survey`] reads the log once. It counts each key's requests in windows of a second, 100 ms and 10 ms, and keeps of
//! each request when which key came. The rate is the most that one key came in a second of the good hours, or where none
//! came twice in one, in a minute; the burst is the highest level that they make at that rate, by the arithmetic of
//! [`crate::limit`]. Then the whole log is replayed under these numbers and under their neighbours.
//!
//! Whatever the log, memory is bounded: by the number of keys that are known at once, by how far lines are put into
//! order, and by the files that hold the rest.

mod advice;
mod hours;
mod keys;
mod order;
mod picture;
mod read;
mod report;
mod spool;
mod survey;
mod trial;
mod windows;

#[cfg(test)]
mod properties;

pub use advice::Advice;
pub use hours::{Class, Hours, Span, SpanError};
pub use keys::Peaks;
pub use picture::picture;
pub use read::{Log, Reading, read};
pub use report::{report, toml};
pub use survey::{Resolution, Survey};
pub use trial::{Candidate, Trial};

/// How many keys are known at once; of more, the one used least recently is forgotten.
pub const MOST_KEYS: usize = 1 << 20;
