//! Gateways that share the places of an origin: [`plan`] says what a seed makes happen, [`origin`]
//! what must hold.
//!
//! The gates, their tasks, the links and the script are the real ones, in the same world, network
//! and store as the other simulations.

mod crowd;
mod judge;
mod origin;
mod plan;
mod run;
#[cfg(test)]
mod tests;
