//! The running gateway: listeners, limits, connections to origins, metrics, logs and status.
//!
//! Words that all modules use:
//!
//! | word | meaning |
//! |---|---|
//! | zone | a limit of rate: its clients are told apart by a key, and each key has a bucket and a queue |
//! | waiter | a request in the queue of a key or of a gate |
//! | slot | the instant at which a waiter may depart |
//! | origin | the servers behind the gateway that answer the requests of a route |
//! | gate | the pace and the maximum number of all requests to one origin |
//! | permit | the right to run one request at an origin or of a key, or to have one connection |
//! | room | the waiting room of an origin: it lets a limited number of visitors in at once |
//! | store | Redis, in which several gateways share zones, gates and rooms |
//! | lease | a right from the store that holds for a limited time, such as some slots of a key |
//! | gateway in force | settings with their zones, origins and routes; a reload replaces it |
//!
//! The modules, lowest layer first. A module uses only itself and the modules listed before it. One
//! exception: the message types of `http` are below `gate` and `origin`. `tests/layers` checks the
//! whole order.
//!
//! | module | content |
//! |---|---|
//! | [`time`] | the system's clock, deadlines, and a worker's precise timer |
//! | `base64_bytes` | bytes as text in the files that outlive the process |
//! | [`overrides`] | values that an operator sets for a while, in place of the configured ones |
//! | [`store`] | the decisions of `limit` made in Redis, for zones and gates that many gateways share |
//! | [`observe`] | metrics, access log, log events |
//! | [`replay`] | recorded traffic, decided again by the same rules |
//! | [`zone`] | zones: their supervisors, key actors and slots |
//! | [`room`] | the waiting room of an origin: its visitors, their tickets and sessions |
//! | [`gate`] | the pace and the limits of the requests to an origin |
//! | [`collapse`] | one request to the origin that answers many clients: leader, followers, kept answers |
//! | [`origin`] | the servers of an origin, their health, and the connections to them |
//! | [`http`] | messages, client connections, the configuration in force, the stages of a request |
//! | [`status`] | status of all of these, once a second: samples, metrics, headline |
//! | [`admin`] | the admin port: API, live page, access rules |
//! | [`server`] | accepting, listening sockets, reload, signals, stop |

#[cfg(not(target_os = "linux"))]
compile_error!("drip runs on Linux only: its queues need timerfd for their precise departures");

pub mod admin;
mod base64_bytes;
pub mod collapse;
pub mod gate;
pub mod http;
pub mod observe;
pub mod origin;
pub mod overrides;
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
