//! **drip**: an async, actor-based leaky-bucket queueing gateway.
//!
//! The modules, lowest layer first. A module uses only itself and modules listed before it, but that
//! `http`'s messages are below `gate` and `origin` (`tests/layers` has the whole order, and checks it):
//!
//! | module | content |
//! |---|---|
//! | [`limit`] | arithmetic of rates, buckets and queues; knows no clock and no I/O |
//! | [`time`] | the system's clock, deadlines, and a worker's precise timer |
//! | `tls` | the servers and certificates that are trusted, and words for why one is refused |
//! | [`store`] | the same decisions made in Redis, for zones and gates that many gateways share |
//! | [`jwt`] | tokens of clients: the keys that sign them, and what a verified one says |
//! | [`config`] | `gateway.toml`: as written, as validated settings, and its changes |
//! | [`observe`] | metrics, access log, log events |
//! | [`replay`] | recorded traffic, decided on again by the same rules |
//! | [`zone`] | zones: their supervisors, key actors and turns |
//! | [`collapse`] | one departure that answers many requests: who leads, who follows, what is kept |
//! | [`room`] | the waiting room of an origin: its visitors, their tickets and sessions |
//! | [`gate`] | what paces an origin and limits the requests at it |
//! | [`origin`] | the servers of an origin, their health, and the connections to them |
//! | [`http`] | messages, connections to clients, the gateway in force, a request's way through it |
//! | [`status`] | what is said of all this each second: samples, metrics, headline |
//! | `remote` | the admin ports of other gateways, as a client reads them |
//! | [`admin`] | the admin port: API, live page, who may ask |
//! | [`server`] | accepting, listening sockets, reload, signals, stop |
//! | [`tools`] | `advise`, `demo`, `import`, `simulate`, `top`, and what they share |
//! | [`cli`] | the subcommands of the program |

#[cfg(not(target_os = "linux"))]
compile_error!("drip runs on Linux only: its queues need timerfd for their precise departures");

pub mod admin;
pub mod cli;
pub mod collapse;
pub mod config;
pub mod gate;
pub mod http;
pub mod jwt;
pub mod limit;
pub mod observe;
pub mod origin;
pub mod replay;
pub mod room;
pub mod server;
#[cfg(test)]
mod simulation;
pub mod status;
pub mod store;
#[cfg(test)]
mod testing;
pub mod time;
mod tls;
pub mod tools;
pub mod zone;
