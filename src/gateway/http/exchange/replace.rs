//! Replaces the origin's response by a page of the route.
//!
//! `keeps`: whether the connection to the origin may be kept after the response.

use std::time::Duration;

use super::download::drop_body;
use super::failure::Failure;
use super::forward::{AtOrigin, Forward};
use super::reply::{Reply, send};
use crate::http::downstream::ClientError;

/// Maximum number of body bytes that are discarded to keep the connection open.
const MAX_DRAINED: usize = 64 * 1024;

/// Maximum time for discarding the body. It is short, because the client waits meanwhile.
const MAX_DRAIN: Duration = Duration::from_millis(50);

impl<'r> Forward<'_, 'r> {
    /// Sends a page of the route instead of the origin's response, with the same status.
    ///
    /// The origin's body is read and discarded. If it is long or slow, the connection is closed.
    pub(super) async fn replace(
        &mut self,
        at_origin: AtOrigin<'r>,
        keeps: bool,
        retry_after: u32,
    ) -> Result<(), Failure> {
        self.end_replaced(at_origin, keeps).await;
        let reply = Reply::replacing(self.record.status, retry_after);
        // The page is complete here, so only a disconnected client can make sending fail.
        let sent = send(reply, self.client, self.record).await;
        sent.map_err(|_| Failure::Client(ClientError::Disconnected))
    }

    /// Ends the exchange of a response that the client does not get.
    pub(super) async fn end_replaced(&mut self, mut at_origin: AtOrigin<'r>, keeps: bool) {
        if let Some((connection, in_flight)) = &mut at_origin {
            let is_drained = drop_body(connection, MAX_DRAINED, MAX_DRAIN).await;
            // The unread part of the body is not waited for.
            in_flight.ended();
            if !is_drained {
                at_origin = None;
            }
        }
        if let Some((_, in_flight)) = &at_origin {
            // `true`: the origin answered.
            self.end_work(in_flight, true);
        }
        self.in_flight_permits.clear();
        if let Some((connection, in_flight)) = at_origin
            && keeps
            && self.upload.is_complete()
        {
            self.give_back(connection, &in_flight);
        }
    }
}
