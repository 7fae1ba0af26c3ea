//! A page in place of the origin's response.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::failure::Failure;
use super::forward::{AtOrigin, Forward};
use super::reply::{Reply, send};
use crate::http::downstream::{ClientError, ClientStream};
use crate::origin::Connection;
use crate::time::deadline::Deadline;

/// Most bytes of a body that are read for the connection to stay open.
const MAX_DRAINED: usize = 64 * 1024;

/// Longest time in which they are waited for. The client waits as long, so it is short.
const MAX_DRAIN: Duration = Duration::from_millis(50);

impl<'a, 'r: 'a, C: ClientStream> Forward<'a, 'r, C> {
    /// Sends a page of the route in place of the origin's response, with its status.
    ///
    /// The origin's body is read and dropped. If it is long or slow, the connection is closed.
    pub(super) async fn replace(
        &mut self,
        at_origin: AtOrigin<'r>,
        keeps: bool,
        retry_after: u32,
    ) -> Result<(), Failure> {
        self.end_replaced(at_origin, keeps).await;
        let reply = Reply::replacing(self.record.status(), retry_after);
        // It is over once the client has left: nothing else can go wrong with a response that is
        // complete here.
        let sent = send(reply, self.client, self.record).await;
        sent.map_err(|_| Failure::Client(ClientError::Gone))
    }

    /// Ends the exchange of a response that the client does not get.
    pub(super) async fn end_replaced(&mut self, mut at_origin: AtOrigin<'r>, keeps: bool) {
        if let Some((connection, in_flight)) = &mut at_origin {
            let is_drained = drained(connection).await;
            // What is not read of it is not waited for either.
            in_flight.ended();
            if !is_drained {
                at_origin = None;
            }
        }
        if let Some((_, in_flight)) = &at_origin {
            self.end_work(in_flight, true);
        }
        self.occupied.clear();
        if let Some((connection, in_flight)) = at_origin
            && keeps
            && self.upload.is_complete()
        {
            self.give_back(connection, &in_flight);
        }
    }
}

/// Reads and drops the body of a response. Returns whether all of it came, in bounds.
async fn drained(connection: &mut Connection) -> bool {
    let (mut deadline, mut count) = (Deadline::default(), 0);
    poll_fn(|cx| {
        while !connection.body_is_over() {
            match connection.poll_body(cx) {
                Poll::Ready(Ok(piece)) => count += piece.len(),
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Pending => {
                    deadline.start(MAX_DRAIN);
                    return deadline.poll(cx).map(|()| false);
                }
            }
            if count > MAX_DRAINED {
                return Poll::Ready(false);
            }
        }
        Poll::Ready(true)
    })
    .await
}
