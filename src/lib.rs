//! An actor-based leaky-bucket queueing gateway.
pub mod config;
pub mod limit;
