//! Simulates gateways that share the permits of a key, with lost calls and failing gateways.
//!
//! The gateways' arithmetic and the script are the real ones. This folder replaces the rest.

mod gateway;
mod history;
#[cfg(test)]
mod tests;
