//! Origins whose end is known, behind a gate that the experiment of [`find`](crate::limit::find) drives.
//!
//! The gate is a plain pace: requests leave evenly at the level that the experiment sets, more wait
//! than the origin can take. The truth about an origin comes from long runs at fixed rates.
//!
//! `DRIP_SEEDS=1000` runs so many experiments with each origin, with seeds from `DRIP_FIRST_SEED` on;
//! `DRIP_SEED=42` runs one of them, with its steps.

mod demand;
mod origin;
mod origins;
mod run;
#[cfg(test)]
mod tests;
mod truth;
