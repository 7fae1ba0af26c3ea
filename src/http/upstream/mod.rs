//! The leg to the origin: its servers and how they are doing, and connections that each worker keeps and reuses.
//!
//! | | |
//! |---|---|
//! | `servers`, `slots` | the servers of an origin, which of them is asked, and how many requests at once |
//! | `server`, `condition` | one server, the requests at it, and whether it is in |
//! | `prober`, `probe` | health checks |
//! | `connection`, `pool`, `error` | a request's connection, those that are idle, and why there is no answer |
//! | `dial`, `stream`, `tls`, `names`, `resolver` | new connections: over TCP, TLS and unix sockets, to addresses and names |

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
