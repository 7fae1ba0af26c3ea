//! The leg to the origin: connections, kept and reused by each worker, and the requests that go over them.

mod body;
mod connection;
mod error;
mod forward;

pub(super) use body::{FromClient, ToClient};
pub use connection::Pools;
pub use error::OriginError;
pub(super) use forward::forward;
