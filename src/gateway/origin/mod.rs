//! The side to the origins: their servers, the health of each, and the connections of each worker.
//!
//! An *origin* is a named group of servers to which routes send requests. A server is *in* if it
//! gets requests, else *out*.
//!
//! | module | content |
//! |---|---|
//! | `servers` | [`Origin`]: the servers of an origin, with its gate |
//! | `group`, `choice` | choice of a server by weight, limit or hash |
//! | `server`, `health` | one server, and whether it is in |
//! | `failures` | rules by which failures take servers out |
//! | `good_answers` | latest good answers of a server, by client |
//! | `in_flight`, `in_flight_table` | a request at a server, and the table of all of them |
//! | `incidents`, `failure_kind` | latest failure of a server and its kind, for the API |
//! | `shown_certificate` | expiry of the certificate that a server showed last |
//! | `health_check`, `grpc_health` | a health check, and its messages in gRPC |
//! | `prober` | the tasks that repeat the checks of all servers |
//! | `outage` | requests that wait while no server can be reached, and the attempts to reach one |
//! | `connection`, `http1`, `http2` | connections in use, over either version |
//! | `pool` | the connections of a worker to each server |
//! | `tied` | idle connections of one client |
//! | `addresses` | addresses of a name, and connections to addresses that it no longer has |
//! | `error` | errors for which there is no response |
//! | `dial`, `stream`, `tls` | new connections over TCP, TLS and unix sockets |
//! | `dns`, `resolver` | lookups of names |
//! | `report` | samples, metrics and rules of the headline |
//! | `shortage` | waiting for a file descriptor or a local port |

mod addresses;
pub(crate) mod api;
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
mod health_check;
mod http1;
mod http2;
mod in_flight;
mod in_flight_table;
mod incidents;
mod outage;
mod pool;
mod prober;
pub(crate) mod report;
mod resolver;
mod server;
mod servers;
mod shortage;
mod shown_certificate;
mod stream;
#[cfg(test)]
mod test_servers;
mod tied;
mod tls;

pub use connection::Connection;
pub use dial::Dialer;
pub use error::OriginError;
pub use failure_kind::FailureKind;
pub use http1::Http1Connection;
pub use http2::Http2Exchange;
pub use in_flight::InFlight;
pub use in_flight_table::{AtServer, InFlightTable, Phase, Sender};
pub use incidents::{Availability, Failure, LastCheck, OutBy};
pub(crate) use pool::Needs;
pub use pool::Pools;
pub use prober::Prober;
pub use server::Server;
pub use servers::Origin;
pub(crate) use shortage::lacks_descriptor;
pub use tied::TiedConnections;
