use std::io;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::http::message::InvalidResponse;
use crate::observe::metrics::Outcome;

/// Why an origin gave no response.
#[derive(Debug, Error)]
pub enum OriginError {
    /// The server did not accept a connection.
    #[error("connecting to {server} failed: {source}")]
    Connect {
        /// The server.
        server: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The server did not accept a connection in time.
    #[error("connecting to {server} took longer than {limit:?}")]
    ConnectTimeout {
        /// The server.
        server: String,
        /// `connect_timeout`.
        limit: Duration,
    },
    /// The server did not begin to respond in time.
    #[error("{server} did not answer within {limit:?}")]
    ResponseTimeout {
        /// The server.
        server: String,
        /// `response_timeout`.
        limit: Duration,
    },
    /// The connection was closed or broke before the head of a response was complete.
    #[error("{server} gave no answer: {source}")]
    Broken {
        /// The server.
        server: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The server sent a response that cannot be forwarded.
    #[error("{server} gave an invalid answer: {invalid}")]
    Invalid {
        /// The server.
        server: String,
        /// What is wrong with the response.
        invalid: InvalidResponse,
    },
    /// No file descriptor was free for a connection in time. No server was asked.
    #[error("no file descriptor was free for a connection to {server} within {limit:?}")]
    NoDescriptor {
        /// The server.
        server: String,
        /// `connect_timeout`.
        limit: Duration,
    },
    /// No local port was free for a connection in time. No server was asked.
    #[error("no local port was free for a connection to {server} within {limit:?}")]
    NoLocalPort {
        /// The server.
        server: String,
        /// `connect_timeout`.
        limit: Duration,
    },
    /// All servers of the origin are out, after failures or by their health checks.
    #[error("the origin {origin} has no server in use; try again in {retry_after:?}")]
    AllOut {
        /// The origin.
        origin: String,
        /// Time until the first of them may be asked again.
        retry_after: Duration,
    },
    /// All servers that are in have as many requests as the file allows.
    #[error("the servers of the origin {origin} have as many requests as their max_in_flight")]
    AllFull {
        /// The origin.
        origin: String,
    },
    /// No server could be reached for all of `hold`, and the request was not sent.
    #[error("{last}; the request has waited for it for {hold:?}")]
    Outage {
        /// Why no server was reached when one was last tried.
        last: Arc<OriginError>,
        /// `hold`.
        hold: Duration,
    },
}

impl OriginError {
    /// Returns the status for the client.
    ///
    /// 504 if time ran out, 502 if the origin failed, 503 if it was not asked.
    pub fn status(&self) -> u16 {
        match self {
            Self::ConnectTimeout { .. } | Self::ResponseTimeout { .. } => 504,
            Self::Connect { .. } | Self::Broken { .. } | Self::Invalid { .. } => 502,
            Self::NoDescriptor { .. }
            | Self::NoLocalPort { .. }
            | Self::AllOut { .. }
            | Self::AllFull { .. } => 503,
            Self::Outage { last, .. } => last.status(),
        }
    }

    /// Returns when the client may try again, if the origin was not asked.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::AllOut { retry_after, .. } => Some(*retry_after),
            Self::NoDescriptor { limit, .. } | Self::NoLocalPort { limit, .. } => Some(*limit),
            Self::AllFull { .. } => Some(Duration::from_secs(1)),
            Self::Outage { last, .. } => last.retry_after(),
            _ => None,
        }
    }

    /// Returns whether the gateway is at fault, and not a server.
    pub fn is_own(&self) -> bool {
        matches!(
            self,
            Self::NoDescriptor { .. } | Self::NoLocalPort { .. } | Self::AllFull { .. }
        )
    }

    /// Returns whether the request itself may be the cause: a server had it, and ended the connection
    /// or the stream, or answered what is no response.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::Broken { .. } | Self::Invalid { .. })
    }

    /// Returns whether the request need only wait until a server has fewer requests.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::AllFull { .. })
    }

    /// Returns whether no server was reached, so that a later try may reach one.
    ///
    /// A server that was reached but is not the right one stays so: its certificate does not
    /// verify, or it does not speak TLS.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Connect { source, .. } => source.kind() != io::ErrorKind::InvalidData,
            Self::ConnectTimeout { .. } | Self::AllOut { .. } => true,
            Self::ResponseTimeout { .. }
            | Self::Broken { .. }
            | Self::Invalid { .. }
            | Self::NoDescriptor { .. }
            | Self::NoLocalPort { .. }
            | Self::AllFull { .. }
            | Self::Outage { .. } => false,
        }
    }

    /// Returns the outcome for the metrics.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::NoDescriptor { .. }
            | Self::NoLocalPort { .. }
            | Self::AllOut { .. }
            | Self::AllFull { .. }
            | Self::Outage { .. } => Outcome::Unreachable,
            Self::ResponseTimeout { .. } => Outcome::Timeout,
            Self::Broken { .. } | Self::Invalid { .. } => Outcome::Broken,
        }
    }
}
