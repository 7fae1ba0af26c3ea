//! Serves a request, from its head to the last byte of its response.

use std::future::poll_fn;
use std::num::NonZeroU64;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_util::future::Either;
use limit::Moment;

use super::admit::admit;
use super::arrive::{Arrival, Stop, arrive};
use super::buffered_client::{BufferedClient, size_for};
use super::collapse;
use super::forward::Forward;
use super::onward::{Decision, Onward};
use super::record::{RequestRecord, record_unreadable};
use super::reply::{Reply, send};
use super::request_info::RequestInfo;
use super::worker::Worker;
use crate::http::downstream::{
    Aborted, ClientError, ClientStream, ConnectionContext, RequestService, unless_gone,
};
use crate::http::message::RequestHead;
use crate::time::pacer::Priority;

/// The rest of a request, in a box: a request that waits has no room for it.
type Rest<'w> = Pin<Box<dyn Future<Output = Result<(), Aborted>> + 'w>>;

impl RequestService for Worker {
    /// Serves one request: it arrives (`arrive`), is admitted (`admit`), and is forwarded or answered.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn has room for its arguments twice"
    )]
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
            let (size, arrived) = with_buffer_size(arrive(&mut record), &record);
            if let Some(size) = size {
                // Boxed: few requests have a buffer.
                return Box::pin(serve_buffered(arrived, size, client, &mut record)).await;
            }
            let decision = {
                let admission = pin!(admit(arrived, &mut record));
                let decided = unless_gone(client, admission).await;
                decided.map_err(|_| Aborted::ClientGone)?
            };
            finish(decision, client, &mut record, priority).await
        }
    }

    fn refused(&self, status: u16, context: &ConnectionContext) {
        if let Some(gateway) = self.gateway_now() {
            record_unreadable(&gateway, context.peer().ip(), status, self.pacer.now());
        }
    }

    fn poll_admission(&self, task: &mut Priority, cx: &mut Context<'_>) -> Poll<Moment> {
        self.pacer.poll_departures_first(task, cx)
    }
}

/// Serves a request whose origin has a [buffer](buffer_size) for its body: receives that, and then
/// does as for any other request.
///
/// The request arrives at its limits once the body is here: a zone's slot is for the moment in which
/// the request leaves.
async fn serve_buffered<'r>(
    arrived: Result<Arrival<'r>, Stop<'r>>,
    size: NonZeroU64,
    client: &mut dyn ClientStream,
    record: &mut RequestRecord<'r>,
) -> Result<(), Aborted> {
    let (gateway, pacer) = (record.gateway, &record.worker.pacer);
    let mut client = BufferedClient::new(client, gateway.body_memory(), size);
    let most = gateway.settings().server.max_body_size;
    match client.receive(record.info.head, most).await {
        Ok(()) => {}
        Err(ClientError::Gone) => return Err(Aborted::ClientGone),
        Err(error) => return send(Reply::client_error(error), &mut client, record).await,
    }
    record.body_received(pacer.now());
    let decided = {
        let admission = pin!(admit(arrived, record));
        unless_gone(&client, admission).await
    };
    let decision = decided.map_err(|_| Aborted::ClientGone)?;
    finish(decision, &mut client, record, pacer.priority()).await
}

/// Returns how much of a request's body is received before the request joins its zones, and the
/// arrival as it was given: the future of a request keeps what it has borrowed.
fn with_buffer_size<'r>(
    arrived: Result<Arrival<'r>, Stop<'r>>,
    record: &RequestRecord<'_>,
) -> (Option<NonZeroU64>, Result<Arrival<'r>, Stop<'r>>) {
    let origin = match &arrived {
        // It goes there if the room lets it in.
        Ok(Arrival { to, .. }) | Err(Stop::AtRoom(to)) => Some(to.origin),
        Err(Stop::Reply(_)) => None,
    };
    let size = origin.and_then(|origin| {
        let settings = record.gateway.origin(origin).settings();
        size_for(record.info.head, settings.request_buffer)
    });
    (size, arrived)
}

/// Forwards a request that was admitted, or sends the response to one that goes no further.
///
/// A future has room of its own for what it keeps in more than one step. So from here on there is
/// one step.
fn finish<'w, 'r: 'w>(
    decision: Decision<'r>,
    client: &'w mut dyn ClientStream,
    record: &'w mut RequestRecord<'r>,
    priority: Priority,
) -> impl Future<Output = Result<(), Aborted>> {
    let rest: Rest<'w> = match decision {
        Ok(Onward::Admitted(admitted)) => Box::pin(Forward::new(admitted, client, record).run()),
        Ok(Onward::Leads(leading)) => Box::pin(collapse::lead(leading, Some(client), record)),
        Err(reply) => return Either::Right(refuse(reply, client, record, priority)),
    };
    Either::Left(rest)
}

/// Sends the response to a request that goes no further.
///
/// This is not an `async fn`, which has room for the response and for its bytes.
fn refuse(
    reply: Reply<'_>,
    client: &mut dyn ClientStream,
    record: &mut RequestRecord<'_>,
    mut priority: Priority,
) -> impl Future<Output = Result<(), Aborted>> {
    let (mut is_drained, mut sending) = (false, Err(reply));
    poll_fn(move |cx| {
        if let Err(reply) = &sending {
            // If the body is not completely here, the connection closes after the response.
            if !is_drained {
                client.drain_body(cx);
                is_drained = true;
            }
            // A flood's rejections become ready many at once: departures go before each.
            ready!((record.worker.pacer).poll_departures_first(&mut priority, cx));
            sending = Ok(reply.begin(client, record));
        }
        match &mut sending {
            Ok(body) => body.poll_send(client, cx),
            Err(_) => Poll::Pending,
        }
    })
}
