//! What needs no other program but most of the machine: floods, crowds, experiments at real rates, and pace to the millisecond.

mod abuse;
mod backoff;
mod collapse_soak;
mod find;
mod pacing;
mod room_crowd;
mod soak;
