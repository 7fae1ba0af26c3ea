use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::http::message::InvalidResponse;
use crate::metrics::Outcome;

/// Why an origin gave no answer.
#[derive(Debug, Error)]
pub enum OriginError {
    /// It did not take a connection.
    #[error("connecting to {server} failed: {source}")]
    Connect {
        /// Which server.
        server: String,
        /// What the system said.
        source: io::Error,
    },
    /// It did not take a connection in time.
    #[error("connecting to {server} took longer than {limit:?}")]
    ConnectTimeout {
        /// Which server.
        server: String,
        /// `connect_timeout`.
        limit: Duration,
    },
    /// It did not begin to answer in time.
    #[error("{server} did not answer within {limit:?}")]
    ResponseTimeout {
        /// Which server.
        server: String,
        /// `response_timeout`.
        limit: Duration,
    },
    /// Its connection was closed or broke before the head of an answer was whole.
    #[error("{server} gave no answer: {source}")]
    Broken {
        /// Which server.
        server: String,
        /// What the system said.
        source: io::Error,
    },
    /// What it sent cannot go on.
    #[error("{server} gave an invalid answer: {invalid}")]
    Invalid {
        /// Which server.
        server: String,
        /// What is wrong with it.
        invalid: InvalidResponse,
    },
    /// No place came free at it.
    #[error("the origin {origin} had no free place for {limit:?}")]
    Full {
        /// Which origin.
        origin: String,
        /// `queue_timeout`.
        limit: Duration,
    },
    /// All its servers are out, after failures or by their health checks.
    #[error("no server of the origin {origin} is in; try again in {retry_after:?}")]
    AllOut {
        /// Which origin.
        origin: String,
        /// How long until the first of them may be asked again.
        retry_after: Duration,
    },
}

impl OriginError {
    /// The status that tells the client: 504 where time ran out, 502 where the origin failed, 503
    /// where it is not asked.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::ConnectTimeout { .. } | Self::ResponseTimeout { .. } => 504,
            Self::Connect { .. } | Self::Broken { .. } | Self::Invalid { .. } => 502,
            Self::AllOut { .. } | Self::Full { .. } => 503,
        }
    }

    /// When the client may come again, where the origin was not asked.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::AllOut { retry_after, .. } => Some(*retry_after),
            Self::Full { limit, .. } => Some(*limit),
            _ => None,
        }
    }

    /// As it is counted.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::AllOut { .. }
            | Self::Full { .. } => Outcome::Unreachable,
            Self::ResponseTimeout { .. } => Outcome::Timeout,
            Self::Broken { .. } | Self::Invalid { .. } => Outcome::Broken,
        }
    }
}
