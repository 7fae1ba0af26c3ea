//! Errors for which an origin gave no response, with the status that the client gets instead.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::http::message::InvalidResponse;
use crate::observe::metrics::Outcome;

/// Error: an origin gave no response.
#[derive(Debug, Error)]
pub enum OriginError {
    /// The server did not accept a connection.
    #[error("connecting to {server} failed: {source}")]
    Connect {
        /// URL of the server.
        server: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The server did not accept a connection in time.
    #[error("connecting to {server} took longer than {limit:?}")]
    ConnectTimeout {
        /// URL of the server.
        server: String,
        /// `connect_timeout`.
        limit: Duration,
    },
    /// The server did not begin to respond in time.
    #[error("{server} did not answer within {limit:?}")]
    ResponseTimeout {
        /// URL of the server.
        server: String,
        /// `response_timeout`.
        limit: Duration,
    },
    /// The connection was closed or broke before the head of a response was complete.
    #[error("{server} gave no answer: {source}")]
    Broken {
        /// URL of the server.
        server: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The server sent a response that cannot be forwarded.
    #[error("{server} gave an invalid answer: {invalid}")]
    Invalid {
        /// URL of the server.
        server: String,
        /// Defect of the response.
        invalid: InvalidResponse,
    },
    /// No file descriptor was free for a connection in time. The request was not sent.
    #[error("no file descriptor was free for a connection to {server} within {limit:?}")]
    NoDescriptor {
        /// URL of the server.
        server: String,
        /// `connect_timeout`.
        limit: Duration,
    },
    /// No local port was free for a connection in time. The request was not sent.
    #[error("no local port was free for a connection to {server} within {limit:?}")]
    NoLocalPort {
        /// URL of the server.
        server: String,
        /// `connect_timeout`.
        limit: Duration,
    },
    /// All servers of the origin are out, after failures or by their health checks.
    #[error("the origin {origin} has no server in use; try again in {retry_after:?}")]
    AllOut {
        /// Name of the origin.
        origin: String,
        /// Time until the first server may be used again.
        retry_after: Duration,
    },
    /// Each server that is in has as many requests as its `max_in_flight` allows.
    #[error("all servers of the origin {origin} have reached their max_in_flight")]
    AllFull {
        /// Name of the origin.
        origin: String,
    },
    /// No server could be reached during all of `hold`. The request was not sent.
    #[error("{last}; the request was held for {hold:?}")]
    Outage {
        /// Error of the last attempt to reach a server.
        last: Arc<OriginError>,
        /// `hold`.
        hold: Duration,
    },
}

impl OriginError {
    /// Returns the status for the client.
    ///
    /// 504 after a timeout, 502 if the origin failed, 503 if the request was not sent.
    pub fn status(&self) -> u16 {
        match self {
            Self::ConnectTimeout { .. } | Self::ResponseTimeout { .. } => 504,
            Self::Connect { .. } | Self::Broken { .. } | Self::Invalid { .. } => 502,
            Self::Outage { last, .. } => last.status(),
            Self::NoDescriptor { .. }
            | Self::NoLocalPort { .. }
            | Self::AllOut { .. }
            | Self::AllFull { .. } => 503,
        }
    }

    /// Returns the time after which the client may retry, if the request was not sent.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::AllOut { retry_after, .. } => Some(*retry_after),
            Self::NoDescriptor { limit, .. } | Self::NoLocalPort { limit, .. } => Some(*limit),
            Self::AllFull { .. } => Some(Duration::from_secs(1)),
            Self::Outage { last, .. } => last.retry_after(),
            _ => None,
        }
    }

    /// Returns whether the gateway lacks a resource, so that no server is at fault.
    pub fn is_own(&self) -> bool {
        let lacks = matches!(self, Self::NoDescriptor { .. } | Self::NoLocalPort { .. });
        lacks || self.is_full()
    }

    /// Returns whether the failure is in doubt: the request itself may be its cause.
    ///
    /// This is so if a server had received the request, and then ended the connection or the
    /// stream, or sent an invalid response.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::Broken { .. } | Self::Invalid { .. })
    }

    /// Returns whether the request only has to wait until a server has fewer requests.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::AllFull { .. })
    }

    /// Returns whether no server was reached, so that a later attempt may reach one.
    ///
    /// A server that was reached, but is the wrong one, remains wrong: its certificate does not
    /// verify, or it does not speak TLS.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Connect { source, .. } => source.kind() != io::ErrorKind::InvalidData,
            Self::ConnectTimeout { .. } | Self::AllOut { .. } => true,
            _ => false,
        }
    }

    /// Returns the outcome for the metrics.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::ResponseTimeout { .. } => Outcome::Timeout,
            Self::Broken { .. } | Self::Invalid { .. } => Outcome::Broken,
            // After all other errors, the request was not sent.
            _ => Outcome::Unreachable,
        }
    }
}
