//! The arithmetic of smoothing, and nothing else.
//!
//! No clock, no actor, no I/O: time comes in as a [`Moment`], a bucket goes in and a [`Verdict`] comes out.
//! The live gateway, `drip simulate`, the property tests and the benches call the same functions.
//!
//! - [`Rate`] is exact: a count in a period, never rounded to a number of nanoseconds.
//! - [`Bucket`] decides one request, as nginx's `limit_req` does, without nginx's rounding.
//! - [`Queue`] keeps the requests that a bucket told to wait, in their order of departure.

mod bucket;
mod duration;
mod moment;
mod queue;
mod rate;
mod verdict;

pub use bucket::Bucket;
pub use duration::{parse_duration, show_duration};
pub use moment::Moment;
pub use queue::{Charge, Departure, Queue, Ticket};
pub use rate::{Rate, RateError};
pub use verdict::{Delay, Excess, Limit, Reason, Refusal, Verdict};
