//! Origins whose end is known, behind a gate that the experiment of [`find`](limit::find) drives.
//!
//! The gate is a plain pace: requests leave evenly at the level that the experiment sets, more wait
//! than the origin can take. The truth about an origin comes from long runs at fixed rates.
//!
//! Everyday runs take one of the seeds that are known to hold, long ones hundreds of random ones: see
//! `tests/testing/search.rs`. `DRIP_SEED=42` runs one of them, and prints its steps.

mod origins;
mod run;
#[cfg(test)]
mod tests;
