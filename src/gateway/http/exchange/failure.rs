//! Reasons why a request, or one attempt on a connection, got no response.
//!
//! `forward` and `answer` return them; `reply` turns them into responses.

use std::io;

use config::Route;

use super::reply::Reply;
use crate::gate::GateRejection;
use crate::http::downstream::{Aborted, ClientError};
use crate::origin::OriginError;

/// Reason why a request got no response, or only a part of one.
pub(super) enum Failure {
    /// The client caused the failure.
    Client(ClientError),
    /// The origin gave no response.
    Origin(OriginError),
    /// The gate of the origin rejected the request, which had returned there to wait again.
    Rejected(GateRejection),
    /// The response ended before it was complete.
    Broken,
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl Failure {
    /// Returns the response for the client, if it can still receive one.
    pub(super) fn reply(self, route: &Route, has_begun: bool) -> Result<Reply<'_>, Aborted> {
        match self {
            Self::Client(ClientError::Disconnected) => Err(Aborted::ClientDisconnected),
            Self::Origin(error) if !has_begun => Ok(Reply::unanswered(&error)),
            Self::Rejected(rejection) if !has_begun => {
                Ok(Reply::rejected_at_gate(route, &rejection))
            }
            Self::Client(error) if !has_begun => Ok(Reply::of_status(error.status())),
            _ => Err(Aborted::AnswerBroken),
        }
    }
}

/// Reason why one connection gave no response.
pub(super) enum Attempt {
    /// The connection was closed or failed before any byte of a response.
    Closed(io::Error),
    /// The attempt failed, and the request is not sent again.
    Failed(Failure),
}

impl From<ClientError> for Attempt {
    fn from(error: ClientError) -> Self {
        Self::Failed(Failure::Client(error))
    }
}
