//! The leg to the origin: its servers and how they are doing, connections that are kept and reused by each worker, and
//! the requests that go over them.

mod body;
mod connection;
mod error;
mod forward;
mod servers;
mod slots;

pub use body::{BrokenBody, FromClient, ToClient};
pub use connection::Pools;
pub use error::OriginError;
pub use forward::{Forwarded, forward};
pub use servers::{InFlight, Origin};
