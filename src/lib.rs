//! An actor-based leaky-bucket queueing gateway.
pub mod limit;
