use std::time::Duration;

use crate::config::Server;

/// How long, and how much, is borne of a client.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a whole head.
    pub(super) head: Duration,
    /// Between two requests; zero: none follows.
    pub(super) idle: Duration,
    /// For any byte of a body, either way.
    pub(super) body: Duration,
    /// Bytes of a head.
    pub(super) max_header_size: usize,
}

impl Patience {
    /// As the settings have it.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        Self {
            head: server.header_timeout,
            idle: server.keep_alive,
            body: server.body_timeout,
            max_header_size: server.max_header_size,
        }
    }
}
