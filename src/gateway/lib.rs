//! The running gateway: listeners, limits, connections to origins, and what it reports.
//!
//! The modules, lowest layer first. A module uses only itself and modules listed before it, but that
//! `http`'s messages are below `gate` and `origin` (`tests/layers` has the whole order, and checks it):
//!
//! | module | content |
//! |---|---|
//! | [`time`] | the system's clock, deadlines, and a worker's precise timer |
//! | [`store`] | the decisions of `limit` made in Redis, for zones and gates that many gateways share |
//! | [`observe`] | metrics, access log, log events |
//! | [`replay`] | recorded traffic, decided on again by the same rules |
//! | [`zone`] | zones: their supervisors, key actors and turns |
//! | [`room`] | the waiting room of an origin: its visitors, their tickets and sessions |
//! | [`gate`] | what paces an origin and limits the requests at it |
//! | [`collapse`] | one departure that answers many requests: who leads, who follows, what is kept |
//! | [`origin`] | the servers of an origin, their health, and the connections to them |
//! | [`http`] | messages, connections to clients, the gateway in force, a request's way through it |
//! | [`status`] | what is said of all this each second: samples, metrics, headline |
//! | [`admin`] | the admin port: API, live page, who may ask |
//! | [`server`] | accepting, listening sockets, reload, signals, stop |

#[cfg(not(target_os = "linux"))]
compile_error!("drip runs on Linux only: its queues need timerfd for their precise departures");

pub mod admin;
pub mod collapse;
pub mod gate;
pub mod http;
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
mod test_settings;
pub mod time;
pub mod zone;
