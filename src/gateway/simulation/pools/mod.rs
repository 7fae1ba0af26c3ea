//! Simulates gateways that share the permits of an origin.
//!
//! A permit is the right to run one request at the origin. The store leases permits to gateways.
//!
//! [`plan`] has the scenario of a seed, [`origin`] the invariants. The gates, their tasks, the
//! links and the script are the real ones, in the same world, network and store as the other
//! simulations.

mod crowd;
mod judge;
mod origin;
mod plan;
mod run;
#[cfg(test)]
mod tests;
