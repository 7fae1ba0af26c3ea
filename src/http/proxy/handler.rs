use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use super::client::Client;
use super::forward::{Failure, Forward};
use super::limits;
use super::record::RequestRecord;
use super::reply::Reply;
use super::request_info::RequestInfo;
use super::upload::Upload;
use super::worker::Worker;
use crate::config::Route;
use crate::gateway::Gateway;
use crate::http::downstream::{
    Aborted, ClientError, ClientStream, ConnectionContext, RequestService, unless_gone,
};
use crate::http::message::RequestHead;
use crate::http::message::sender::Then;
use crate::limit::Moment;
use crate::pacer::Priority;

impl RequestService for Worker {
    /// Serves one request, from its head to the last byte of its answer.
    async fn serve<C: ClientStream>(
        &self,
        head: &RequestHead,
        began: Moment,
        client: &mut C,
        context: &ConnectionContext,
    ) -> Result<(), Aborted> {
        let gateway = self.gateway().await;
        let settings = gateway.settings();
        let info = RequestInfo::new(head, context.peer(), &settings.server);
        let mut record = RequestRecord::new(
            &gateway,
            &self.pacer,
            info.client.address,
            Some(head),
            began,
        );
        let admitted = {
            let admission = pin!(admit(self, &gateway, &info, &mut record));
            unless_gone(&*client, admission).await
        };
        let reply = match admitted.map_err(|_| Aborted::ClientGone)? {
            Err(reply) => {
                // What is not all here closes the connection after the answer.
                client.drain_body().await;
                reply
            }
            Ok(route) => {
                let waited = record.outcome.as_ref().map(|outcome| outcome.waited);
                let began = record.began + waited.unwrap_or_default();
                let mut forward = Forward {
                    worker: self,
                    gateway: &gateway,
                    route,
                    info: &info,
                    context,
                    client,
                    record: &mut record,
                    upload: Upload::new(settings.server.max_body_size),
                    began,
                    sent: began,
                    continued: false,
                    any_head: false,
                    named_away: Vec::new(),
                };
                // Boxed: whoever waits for a turn, or is answered here, needs no room for it.
                match Box::pin(async move { forward.run().await }).await {
                    Ok(()) => return Ok(()),
                    Err(Failure::Client(ClientError::Gone)) => return Err(Aborted::ClientGone),
                    Err(Failure::Origin(error)) if !client.has_begun() => Reply::unanswered(&error),
                    Err(Failure::Client(error)) if !client.has_begun() => {
                        Reply::client_error(error)
                    }
                    Err(_) => return Err(Aborted::AnswerBroken),
                }
            }
        };
        record.answer_began(reply.status);
        let to_head = head.is_head();
        if !to_head {
            record.sent(reply.body_length());
        }
        let route = record.route.and_then(|route| settings.routes.get(route));
        let limited = route
            .zip(record.outcome.as_ref())
            .map(|(route, outcome)| (&**gateway, route.headers, outcome, record.origin_took));
        let now = if record.server.is_some() {
            self.pacer.now()
        } else {
            let waited = record.outcome.as_ref().map(|outcome| outcome.waited);
            began + waited.unwrap_or_default()
        };
        let mut body = reply.begin(client, to_head, now, limited);
        let sent = poll_fn(|cx| client.poll_send(cx, &mut body, Then::End(None))).await;
        sent.map_err(|_| Aborted::ClientGone)
    }

    fn refused(&self, status: u16, context: &ConnectionContext) {
        if let Some(gateway) = self.gateway_now() {
            let client = Client::of_peer(context.peer());
            let now = self.pacer.now();
            RequestRecord::new(&gateway, &self.pacer, client.address, None, now)
                .answer_began(status);
        }
    }

    fn poll_admission(&self, task: &mut Priority, cx: &mut Context<'_>) -> Poll<Moment> {
        self.pacer.poll_departures_first(task, cx)
    }
}

/// Finds the route of a request and waits for its turn. `Err` is the answer where it goes no further.
async fn admit<'a>(
    worker: &Worker,
    gateway: &'a Gateway,
    info: &RequestInfo<'_>,
    record: &mut RequestRecord<'_>,
) -> Result<&'a Route, Reply<'a>> {
    if let Some(unfit) = info.unfit() {
        return Err(Reply::unfit(unfit));
    }
    let settings = gateway.settings();
    let method = str::from_utf8(info.head.method()).ok();
    let found = settings.route(&info.path, Some(&info.host), method);
    let Some((index, route)) = found else {
        return Err(Reply::plain(404, "No route takes this request\n"));
    };
    record.route = Some(index);
    let length = info.head.length().exact();
    let limit = settings.server.max_body_size;
    if limit.is_some_and(|limit| length.is_some_and(|length| length > limit.get())) {
        return Err(Reply::client_error(ClientError::TooLarge));
    }
    let place = &mut record.place;
    let outcome = limits::wait(worker, gateway, route, info, record.began, place).await;
    let outcome = record.outcome.insert(outcome);
    match &outcome.rejection {
        Some(rejection) => Err(Reply::rejected(route, rejection)),
        None => Ok(route),
    }
}
