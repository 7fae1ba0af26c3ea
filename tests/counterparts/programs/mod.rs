//! Programs that tests of several groups start.

pub mod curl;
pub mod haproxy;
pub mod nginx;
pub mod python;
pub mod redis;
pub mod running;
pub mod varnish;
