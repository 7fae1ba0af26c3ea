//! Serves a request, from its head to the last byte of its response.
//!
//! `arrive` and `admit` decide about the request, `forward` sends it to its origin. A *departure*
//! is a request that has waited and goes to its origin now; departures have priority over new
//! requests.

use std::future::poll_fn;
use std::num::NonZeroU64;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_util::future::Either;
use limit::Moment;

use super::admit::admit;
use super::arrive::{Arrival, NotArrived, arrive};
use super::collapse;
use super::decision::{Decision, Proceed};
use super::forward::Forward;
use super::record::{RequestRecord, record_unreadable};
use super::reply::{Reply, send};
use super::request_buffer::{BufferedClient, size_to_receive};
use super::request_info::RequestInfo;
use super::worker::Worker;
use crate::http::downstream::{
    Aborted, ClientError, ClientStream, ConnectionContext, RequestService, unless_disconnected,
};
use crate::http::message::RequestHead;
use crate::time::pacer::Priority;

/// Boxed future of the rest of a request: a waiting request reserves no space for it.
type Rest<'w> = Pin<Box<dyn Future<Output = Result<(), Aborted>> + 'w>>;

impl RequestService for Worker {
    /// Serves one request: `arrive`, then `admit`, then it is forwarded or answered.
    fn serve(
        &self,
        head: RequestHead,
        began: Moment,
        client: &mut dyn ClientStream,
        context: &ConnectionContext,
    ) -> impl Future<Output = Result<(), Aborted>> {
        async move {
            let gateway = self.gateway().await;
            let priority = self.pacer.priority();
            let info = RequestInfo::new(&head, context, &gateway.settings().server);
            let mut record = RequestRecord::new(self, &gateway, &info, began);
            let (buffer_size, arrived) = with_buffer_size(arrive(&mut record), &record);
            if let Some(size) = buffer_size {
                // Boxed: few requests have a buffer.
                return Box::pin(serve_buffered(arrived, size, client, &mut record)).await;
            }
            let decision = {
                let admission = pin!(admit(arrived, &mut record));
                let decided = unless_disconnected(client, admission).await;
                decided.map_err(|_| Aborted::ClientDisconnected)?
            };
            forward_or_reply(decision, client, &mut record, priority).await
        }
    }

    fn record_refused(&self, status: u16, context: &ConnectionContext) {
        if let Some(gateway) = self.gateway_now() {
            record_unreadable(&gateway, context.peer().ip(), status, self.pacer.now());
        }
    }

    fn poll_admission(&self, task: &mut Priority, cx: &mut Context<'_>) -> Poll<Moment> {
        self.pacer.poll_departures_first(task, cx)
    }
}

/// Serves a request whose origin has a [buffer](size_to_receive) for its body.
///
/// The body is received before the request joins its limits, so that the request can go to its
/// origin as soon as they admit it.
async fn serve_buffered<'r>(
    arrived: Result<Arrival<'r>, NotArrived<'r>>,
    size: NonZeroU64,
    client: &mut dyn ClientStream,
    record: &mut RequestRecord<'r>,
) -> Result<(), Aborted> {
    let (gateway, pacer) = (record.gateway, &record.worker.pacer);
    let mut client = BufferedClient::new(client, gateway.body_memory(), size);
    let max_size = gateway.settings().server.max_body_size;
    match client.receive(record.info.head, max_size).await {
        Ok(()) => {}
        Err(ClientError::Disconnected) => return Err(Aborted::ClientDisconnected),
        Err(error) => return send(Reply::of_status(error.status()), &mut client, record).await,
    }
    record.note_body_received(pacer.now());
    let decided = {
        let admission = pin!(admit(arrived, record));
        unless_disconnected(&client, admission).await
    };
    let decision = decided.map_err(|_| Aborted::ClientDisconnected)?;
    forward_or_reply(decision, &mut client, record, pacer.priority()).await
}

/// Returns the number of body bytes to receive first, and `arrived` unchanged.
///
/// `arrived` is passed through: if it were borrowed, the future of a request would keep it.
fn with_buffer_size<'r>(
    arrived: Result<Arrival<'r>, NotArrived<'r>>,
    record: &RequestRecord<'_>,
) -> (Option<NonZeroU64>, Result<Arrival<'r>, NotArrived<'r>>) {
    let origin = match &arrived {
        // If the room admits the request, it goes to this origin.
        Ok(Arrival { to, .. }) | Err(NotArrived::AtRoom(to)) => Some(to.origin),
        Err(NotArrived::Reply(_)) => None,
    };
    let size = origin.and_then(|origin| {
        let settings = record.gateway.origin(origin).settings();
        size_to_receive(record.info.head, settings.request_buffer)
    });
    (size, arrived)
}

/// Forwards an admitted request, or sends the response to a request that ends here.
///
/// An `async fn` reserves space for each value that lives across an `await`. So this is none, and
/// the rest of the request is one future.
fn forward_or_reply<'w, 'r: 'w>(
    decision: Decision<'r>,
    client: &'w mut dyn ClientStream,
    record: &'w mut RequestRecord<'r>,
    priority: Priority,
) -> impl Future<Output = Result<(), Aborted>> {
    let rest: Rest<'w> = match decision {
        Ok(Proceed::Admitted(admitted)) => Box::pin(Forward::new(admitted, client, record).run()),
        Ok(Proceed::Leads(leading)) => Box::pin(collapse::lead(leading, Some(client), record)),
        Err(reply) => return Either::Right(send_after_departures(reply, client, record, priority)),
    };
    Either::Left(rest)
}

/// Sends the response to a request that ends here, after the worker's due departures.
///
/// This is not an `async fn`, which would reserve space for both the response and its bytes.
fn send_after_departures(
    reply: Reply<'_>,
    client: &mut dyn ClientStream,
    record: &mut RequestRecord<'_>,
    mut priority: Priority,
) -> impl Future<Output = Result<(), Aborted>> {
    // `Err`: the response has not begun. `Ok`: its body is being sent.
    let (mut is_drained, mut sending) = (false, Err(reply));
    poll_fn(move |cx| {
        if let Err(reply) = &sending {
            // If the body has not arrived completely, the connection closes after the response.
            if !is_drained {
                client.drain_body(cx);
                is_drained = true;
            }
            // In a flood, many rejections become ready at once. Departures go before each of them.
            ready!((record.worker.pacer).poll_departures_first(&mut priority, cx));
            sending = Ok(reply.begin(client, record));
        }
        match &mut sending {
            Ok(body) => body.poll_send(client, cx),
            Err(_) => Poll::Pending,
        }
    })
}
