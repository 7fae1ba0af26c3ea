use std::time::Duration;

use crate::config::Server;

/// Time for the first request on an open connection after the gateway is told to stop.
pub(super) const FIRST_REQUEST: Duration = Duration::from_millis(500);

/// Timeouts and size limits for one client connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Time for a whole head.
    pub(super) header: Duration,
    /// Idle time between two requests. Zero: the connection carries only one.
    pub(super) keep_alive: Duration,
    /// Time without any byte of a body, in either direction.
    pub(super) body: Duration,
    /// Maximum size of a head in bytes.
    pub(super) max_header_size: usize,
    /// Maximum number of requests at once on one connection over HTTP/2.
    pub(super) max_concurrent_streams: u32,
}

impl Timeouts {
    /// Takes the values from the settings.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        Self {
            header: server.header_timeout,
            keep_alive: server.keep_alive,
            body: server.body_timeout,
            max_header_size: server.max_header_size,
            max_concurrent_streams: server.max_concurrent_streams.get().into(),
        }
    }
}
