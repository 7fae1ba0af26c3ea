//! Simulates gateways that share the permits of a key, with lost calls and failing gateways.
//!
//! A permit is the right to run one request of the key. The gateways' arithmetic
//! (`limit::KeyPermits`) and the script are the real ones. This folder replaces the rest.

mod gateway;
mod history;
#[cfg(test)]
mod tests;
