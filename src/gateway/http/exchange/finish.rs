//! Finishes a request whose client has disconnected, with `on_client_gone = "finish"`.
//!
//! The request keeps its permits (rights to run at the origin) until the origin has answered. In
//! this file, `keeps` says whether the connection may be kept after the response.

use std::future::poll_fn;
use std::io::ErrorKind;

use config::OnClientDisconnect;

use super::answer::poll_received;
use super::download::drop_body;
use super::failure::{Attempt, Failure};
use super::forward::{AtOrigin, Forward, ResponseKind};
use crate::http::downstream::ClientError;
use crate::origin::OriginError;

impl<'r> Forward<'_, 'r> {
    /// Returns whether the request continues without its client.
    ///
    /// Conditions: the origin has the whole request, and the response is not a stream that lasts as
    /// long as its client.
    pub(super) fn continues_without_client(&self, failure: &Failure) -> bool {
        matches!(failure, Failure::Client(ClientError::Disconnected))
            && self.settings().on_client_gone == OnClientDisconnect::Finish
            && self.upload.is_complete()
            && !self.is_stream
    }

    /// Waits for a response whose head has not arrived yet, and discards it.
    pub(super) async fn finish(&mut self, at_origin: &mut AtOrigin<'r>) {
        self.record.continue_without_client();
        let keeps = self.finish_head(at_origin).await;
        // The record has the status of the response now, but the client received nothing of it.
        self.record.note_disconnect();
        match keeps {
            Some(keeps) if !self.is_stream => self.finish_body(at_origin, keeps).await,
            _ => *at_origin = None,
        }
    }

    /// Waits for the head of the response. Returns whether the connection may be kept afterwards.
    ///
    /// Returns `None` if no head arrives, or if the connection switched to another protocol. Then
    /// the connection is closed.
    async fn finish_head(&mut self, at_origin: &mut AtOrigin<'r>) -> Option<bool> {
        let (connection, in_flight) = at_origin.as_mut()?;
        let failure = loop {
            match self.take_head(connection, in_flight) {
                Ok(Some(ResponseKind::Interim)) => continue,
                Ok(Some(ResponseKind::Switched)) => return None,
                Ok(Some(
                    ResponseKind::Final { keeps }
                    | ResponseKind::Superseded { keeps }
                    | ResponseKind::Replaced { keeps, .. },
                )) => return Some(keeps),
                Ok(None) => {}
                Err(attempt) => break attempt,
            }
            let limits = self.response_limits();
            let since = self.sent_at.max(self.upload.last_piece());
            let limit = limits.after_upload;
            let received = poll_fn(|cx| poll_received(connection, cx, since, limit)).await;
            let received = received.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()));
            if !matches!(received, Ok(1..)) {
                break self.failed_attempt(connection, in_flight, limits, received);
            }
            connection.moved();
        };
        let failure = match failure {
            Attempt::Failed(failure) => failure,
            Attempt::Closed(source) => {
                let server = in_flight.server().to_string();
                Failure::Origin(OriginError::Broken { server, source })
            }
        };
        self.record_failure(in_flight, failure);
        None
    }

    /// Receives and discards the rest of the response's body, at most for `body_timeout`.
    pub(super) async fn finish_body(&mut self, at_origin: &mut AtOrigin<'r>, keeps: bool) {
        let limit = self.body_limit();
        let Some((connection, _)) = at_origin else {
            return;
        };
        self.record.continue_without_client();
        if drop_body(connection, usize::MAX, limit).await {
            self.leave_origin(at_origin, keeps);
        } else {
            *at_origin = None;
        }
    }
}
