//! Tests of a cluster of real Redis servers under the load of two gateways.
//!
//! Slots move, a master is killed, or the network splits.

mod killed;
pub mod load;
mod moves;
pub mod nodes;
