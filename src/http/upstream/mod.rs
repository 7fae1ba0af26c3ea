//! The side to the origin: its servers, their health, and the connections of each worker.
//!
//! | module | what it is |
//! |---|---|
//! | `servers`, `concurrency_limit` | the servers of an origin, the choice of one, its slots |
//! | `server`, `health` | one server, the requests at it, and whether it is in use |
//! | `prober`, `probe` | health checks |
//! | `connection`, `pool`, `idle` | connections in use, and idle connections |
//! | `error` | why there is no response |
//! | `dial`, `stream`, `tls` | new connections over TCP, TLS and unix sockets |
//! | `dns`, `resolver` | the addresses of names |

mod concurrency_limit;
mod connection;
mod dial;
mod dns;
mod error;
mod health;
mod idle;
mod pool;
mod probe;
mod prober;
mod resolver;
mod server;
mod servers;
mod stream;
mod tls;

pub use connection::Connection;
pub use dial::Dialer;
pub use error::OriginError;
pub use pool::Pools;
pub use prober::Prober;
pub use server::InFlight;
pub use servers::{Origin, ServerState};
