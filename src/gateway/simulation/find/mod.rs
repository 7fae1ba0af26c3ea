//! Simulates the experiment of [`find`](limit::find) on origins with known capacity.
//!
//! An experiment raises the level of an origin, its rate or its number of permits, until the
//! objective (such as p95<400ms) breaks. The gate is a plain pace: requests leave evenly at the
//! level, and more requests wait than the origin can process. The true capacity comes from long
//! runs at fixed rates.
//!
//! Everyday runs use one of the seeds that are known to succeed, long runs hundreds of random
//! seeds: see `tests/testing/search.rs`. `DRIP_SEED=42` runs a single seed, and prints its steps.

mod origins;
mod run;
#[cfg(test)]
mod tests;
