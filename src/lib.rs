//! An actor-based leaky-bucket queueing gateway.
pub mod clock;
pub mod config;
pub mod limit;
pub mod pacer;
