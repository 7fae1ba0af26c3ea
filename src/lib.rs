//! An actor-based leaky-bucket queueing gateway.
pub mod clock;
pub mod limit;
pub mod pacer;
