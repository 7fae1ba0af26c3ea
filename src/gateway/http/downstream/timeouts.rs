//! Timeouts and size limits of client connections, in a compact form.

use std::num::NonZeroU32;
use std::time::Duration;

use config::Server;
use limit::{ReuseLimits, Usage};

use crate::time::clock;
use crate::time::lag::Floor;

/// Time in which the first request of an open connection may still arrive after the stop signal.
pub(super) const FIRST_REQUEST: Duration = Duration::from_millis(500);

/// Timeouts and size limits for one client connection.
///
/// The connections of a worker share them.
pub struct Timeouts {
    /// Maximum duration in which a head arrives.
    pub(super) header: Duration,
    /// Maximum idle time between two requests. Zero: a connection carries only one request.
    pub(super) keep_alive: Duration,
    /// Maximum age and number of requests of a connection.
    pub(super) reuse: ReuseLimits,
    /// Minimum progress of the client with a body, in either direction.
    pub(super) floor: Floor,
    /// Maximum size of a head in bytes.
    pub(super) max_header_size: u32,
    /// Maximum number of concurrent requests on one HTTP/2 connection.
    pub(super) max_concurrent_streams: u32,
}

impl Timeouts {
    /// Converts the values of the configuration. Values that are too large become the maximum.
    pub fn of(server: &Server) -> Self {
        let rate = server.min_body_rate;
        // Time for one byte at the minimum rate; `u32::MAX` if there is none.
        let byte_nanos = rate.map(|it| it.span.as_nanos() / u128::from(it.bytes.get()));
        let span = rate.map_or(Duration::ZERO, |it| it.span);
        Self {
            header: server.header_timeout,
            keep_alive: server.keep_alive,
            reuse: ReuseLimits {
                idle: server.keep_alive,
                age: server.keep_alive_time,
                requests: server.keep_alive_requests.map_or(0, NonZeroU32::get),
            },
            floor: Floor {
                pause: server.body_timeout,
                // A shorter period would end pauses that `body_timeout` allows.
                span: span.max(server.body_timeout),
                byte_nanos: byte_nanos.map_or(u32::MAX, |it| it.try_into().unwrap_or(u32::MAX)),
            },
            max_header_size: u32::try_from(server.max_header_size).unwrap_or(u32::MAX),
            max_concurrent_streams: server.max_concurrent_streams.get().into(),
        }
    }

    /// Returns the counter for a new connection; `None` if its age and requests are unlimited.
    pub(super) fn usage(&self) -> Option<Usage> {
        let is_limited = !self.reuse.age.is_zero() || self.reuse.requests > 0;
        is_limited.then(|| Usage::new(&self.reuse, clock::now()))
    }
}
