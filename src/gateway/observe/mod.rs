//! Signals for operators: metrics, spans, the access log, and the log.
//!
//! | file | content |
//! |---|---|
//! | `metrics` | counts, gauges and histograms, in which the code counts events |
//! | `spans` | traces of requests in OTLP |
//! | `access` | the access log, one line for each request |
//! | `log`, `dependencies` | the log of the process, and the lines of libraries in it |
//! | `events`, `summary`, `throttle` | log lines about frequent events, at most one a second |
//! | `backlog`, `stderr` | lines on their way to a thread that writes them |
//! | `escape`, `key_names` | keys and untrusted bytes as text |
//! | `connections`, `certificates` | lists of open client connections and of certificates in force |
//! | `forwarders` | unknown proxies: peers that send limited requests of several clients |
//! | `networks` | crowds: networks with many addresses among the clients that a gate limits |

pub mod access;
mod backlog;
pub mod certificates;
pub mod connections;
mod dependencies;
pub mod escape;
pub mod events;
pub mod forwarders;
pub mod key_names;
pub mod log;
pub mod metrics;
pub mod networks;
pub mod spans;
mod stderr;
pub mod summary;
pub mod throttle;
