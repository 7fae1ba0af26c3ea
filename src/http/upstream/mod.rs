//! The side to the origin: its servers, their health, and the connections of each worker.
//!
//! | module | what it is |
//! |---|---|
//! | `servers`, `slots` | the servers of an origin, the choice of one, and the limit on requests at once |
//! | `server`, `condition` | one server, the requests at it, and whether it is in |
//! | `prober`, `probe` | health checks |
//! | `connection`, `pool`, `error` | connections in use, idle connections, and why there is no response |
//! | `dial`, `stream`, `tls`, `names`, `resolver` | new connections over TCP, TLS and unix sockets |

mod condition;
mod connection;
mod dial;
mod error;
mod names;
mod pool;
mod probe;
mod prober;
mod resolver;
mod server;
mod servers;
mod slots;
mod stream;
mod tls;

pub use connection::Connection;
pub use dial::Dialer;
pub use error::OriginError;
pub use pool::Pools;
pub use prober::Prober;
pub use server::InFlight;
pub use servers::{Origin, ServerState};
