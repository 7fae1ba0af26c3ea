//! **drip**: an async, actor-based leaky-bucket queueing gateway.
//!
//! The modules, from the bottom up. Each uses only those above it in this table:
//!
//! | module | content |
//! |---|---|
//! | [`limit`] | the arithmetic: rates, buckets, queues; no clock, no I/O |
//! | [`clock`], [`pacer`] | the only code that reads time, and a worker's precise timer |
//! | [`deadline`] | deadlines, to the millisecond of the runtime's timer |
//! | [`metrics`] | names and handles of all metrics |
//! | [`config`] | `gateway.toml`: as written, as validated settings, and its changes |
//! | [`target`] | request targets, in the form in which they are compared |
//! | [`access`], [`events`] | the access log, and log events about limits |
//! | [`store`] | the same decisions made in Redis, for many gateways at once |
//! | [`actors`] | who owns which bucket: zone, supervisor, key, turn |
//! | [`gateway`] | the routes, zones and origins in force, and the step to the next version |
//! | [`plot`] | charts as SVG |
//! | [`import`] | converts `nginx.conf` to a `gateway.toml` |
//! | [`replay`] | recorded traffic, judged by the same rules without a clock |
//! | [`advise`] | which rate and burst fit recorded traffic |
//! | [`http`] | one exchange: messages, the connections to clients and origins, and the proxy |
//! | [`admin`] | the admin port for operators |
//! | [`commands`] | the subcommands of the program |

pub mod access;
pub mod actors;
pub mod admin;
pub mod advise;
pub mod clock;
pub mod commands;
pub mod config;
pub mod deadline;
pub mod events;
pub mod gateway;
pub mod http;
pub mod import;
pub mod limit;
pub mod metrics;
pub mod pacer;
pub mod plot;
pub mod replay;
pub mod store;
pub mod target;
#[cfg(test)]
mod testing;
