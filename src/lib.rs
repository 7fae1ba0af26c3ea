//! **drip**: an async, actor-based leaky-bucket queueing gateway.
//!
//! The modules, from the ground up; each knows only those above it here:
//!
//! | module | what it is |
//! |---|---|
//! | [`limit`] | the arithmetic: rates, buckets, queues; no clock, no I/O |
//! | [`clock`], [`pacer`] | the one place that reads time, and the precise timer of a worker |
//! | [`deadline`] | how long something may take, to the millisecond of the runtime |
//! | [`metrics`] | names and handles of what is counted |
//! | [`config`] | `gateway.toml`: as written, as settings that cannot be wrong, and as it changes |
//! | [`target`] | what a request is for, in the form in which it is compared |
//! | [`access`], [`events`] | the access log; what limits do, as log events |
//! | [`store`] | the same decisions made in Redis, for many gateways at once |
//! | [`actors`] | who owns which bucket: zone, supervisor, key, turn |
//! | [`gateway`] | the routes, zones and origins in force, and the step from one version to the next |
//! | [`plot`] | charts as SVG |
//! | [`import`] | `nginx.conf` as a `gateway.toml` |
//! | [`replay`] | recorded traffic, judged by the same rules without a clock |
//! | [`advise`] | which rate and burst fit recorded traffic |
//! | [`http`] | one exchange: messages, the legs to origin and clients, a request's way between them |
//! | [`admin`] | the operators' port |
//! | [`commands`] | what the program does when it is called |

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
