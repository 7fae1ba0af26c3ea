//! Servers of an origin, and errors of requests to them, for unit tests.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::error::OriginError;
use super::server::Server;

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Returns the settings of an origin with these fields, and its servers.
pub(super) fn origin(fields: &str) -> (config::Origin, Vec<Arc<Server>>) {
    let text = format!("[origins.a]\n{fields}\n[[routes]]\npath = \"/\"\norigin = \"a\"\n");
    let origin = crate::test_settings::of_file(&text).origins.remove(0);
    let new = |it: &config::OriginServer| Arc::new(Server::new("a", &it.url));
    let servers = origin.servers.iter().map(new).collect();
    (origin, servers)
}

/// Error of a request that the server may have received.
pub(super) fn broken() -> OriginError {
    let (server, source) = ("s".to_owned(), io::ErrorKind::UnexpectedEof.into());
    OriginError::Broken { server, source }
}

/// Error of a request without a response in time.
pub(super) fn late() -> OriginError {
    let (server, limit) = ("s".to_owned(), SECOND);
    OriginError::ResponseTimeout { server, limit }
}

/// Error of a connection that the server refused.
pub(super) fn refused() -> OriginError {
    let (server, source) = ("s".to_owned(), io::ErrorKind::ConnectionRefused.into());
    OriginError::Connect { server, source }
}
