//! The side to the origin: its servers, their health, and the connections of each worker.
//!
//! | module | what it is |
//! |---|---|
//! | `servers` | the servers of an origin |
//! | `group`, `choice` | the choice of a server where the file says more than their URLs |
//! | `server`, `health` | one server, and whether it is in use |
//! | `failures` | what counts as a failure, and how many servers it takes out |
//! | `good_answers` | to whom a server last gave a good answer |
//! | `in_flight` | a request at a server |
//! | `incidents`, `failure_kind` | what happened last at a server, and what kind of failure it was, for people |
//! | `shown_certificate` | until when the certificate is valid that a server showed last |
//! | `prober`, `probe` | health checks |
//! | `recovery` | the search for the end of an outage |
//! | `connection`, `http1`, `http2` | connections in use, over either version |
//! | `pool`, `idle` | the connections of a worker to each server |
//! | `addresses` | the addresses of a name, and those that have left it |
//! | `error` | why there is no response |
//! | `dial`, `stream`, `tls` | new connections over TCP, TLS and unix sockets |
//! | `dns`, `resolver` | the addresses of names |
//! | `shortage` | what happens without a file descriptor for a new connection |

mod addresses;
pub(crate) mod choice;
mod connection;
mod dial;
mod dns;
pub(crate) mod error;
mod failure_kind;
mod failures;
mod good_answers;
mod group;
mod grpc_health;
mod health;
mod http1;
mod http2;
mod in_flight;
mod in_flight_table;
mod incidents;
mod pool;
mod probe;
mod recovery;
mod resolver;
mod server;
mod servers;
mod shortage;
mod shown_certificate;
mod stream;
mod tls;

pub use connection::Connection;
pub use dial::Dialer;
pub use error::OriginError;
pub use failure_kind::FailureKind;
pub use http1::Http1Connection;
pub use http2::Http2Exchange;
pub use in_flight::InFlight;
pub use in_flight_table::{AtServer, InFlightTable, Phase, Sender};
pub use incidents::{Availability, Failure, LastCheck, OutBy, Outage};
pub(crate) use pool::Needs;
pub use pool::Pools;
pub use pool::TiedConnections;
pub use probe::Prober;
pub use servers::{Origin, ServerState};
