//! The leg to the origin: its servers and how they are doing, connections that are kept and reused by each worker, and
//! the requests that go over them. Its map:
//!
//! | | |
//! |---|---|
//! | `forward`, `body`, `error` | a request's way over a connection, and back |
//! | `servers`, `slots` | the servers of an origin, who of them is asked, and how many requests at once |
//! | `server`, `condition` | one server, the requests at it, and whether it is in |
//! | `prober`, `probe` | health checks |
//! | `connection` | kept connections |
//! | `dial`, `stream`, `tls`, `names`, `resolver` | new connections: over TCP, TLS and unix sockets, to addresses and names |

mod body;
mod condition;
mod connection;
mod dial;
mod error;
mod forward;
mod names;
mod probe;
mod prober;
mod resolver;
mod server;
mod servers;
mod slots;
mod stream;
mod tls;

pub use body::{BrokenBody, FromClient, ToClient};
pub use connection::Pools;
pub use dial::Dialer;
pub use error::OriginError;
pub use forward::{Forwarded, forward};
pub use prober::Prober;
pub use server::InFlight;
pub use servers::{Origin, ServerState};
