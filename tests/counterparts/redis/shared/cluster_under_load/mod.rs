//! A cluster of real Redis servers under the load of two gateways: slots move, a master is killed, the network splits.

mod killed;
pub mod load;
mod moves;
pub mod nodes;
