//! Tests that load the machine: floods, crowds, experiments at real rates, exact pace.
//!
//! They need no other program.

mod abuse;
mod backoff;
mod collapse_soak;
mod find;
mod pacing;
mod room_crowd;
mod soak;
