//! Gateways that share the places of a key, while calls are lost and gateways die or stand still.
//!
//! The arithmetic of the gateways and the script are the real ones; what is between them is here.

mod gateway;
mod history;
#[cfg(test)]
mod tests;
