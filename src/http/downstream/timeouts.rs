use std::time::Duration;

use crate::config::Server;

/// Timeouts and size limits for one client connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a whole head.
    pub(super) header: Duration,
    /// Between two requests; zero: none follows.
    pub(super) keep_alive: Duration,
    /// For any byte of a body, either way.
    pub(super) body: Duration,
    /// Bytes of a head.
    pub(super) max_header_size: usize,
}

impl Timeouts {
    /// As the settings have them.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        Self {
            header: server.header_timeout,
            keep_alive: server.keep_alive,
            body: server.body_timeout,
            max_header_size: server.max_header_size,
        }
    }
}
