//! Receives the head of an origin's response, and begins the response to the client with it.
//!
//! `forward` chooses the connection; `upload` sends the request's body; `download` forwards the
//! body of the response. With `collapse`, other requests (*followers*) may wait for the same
//! answer.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use config::OnClientDisconnect;
use limit::Moment;

use super::failure::{Attempt, Failure};
use super::forward::{Forward, ResponseKind};
use super::ratelimit_headers::whole_seconds;
use super::record::RequestRecord;
use super::response_fields::{self, MadeBy};
use super::retry_after::retry_after;
use super::upload::Upload;
use super::{cost, heads, ratelimit_headers};
use crate::http::downstream::{ClientError, OriginHead, Response, unless_disconnected};
use crate::http::message::{
    BodyLength, FieldName, FieldTable, Fields, InvalidResponse, Put, ResponseHead, Version,
    logs_in_connection, strip_start,
};
use crate::origin::{Connection, InFlight, OriginError};
use crate::time::deadline::Deadline;

/// Interval between checks for a disconnected client while the origin does not accept the upload.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// Returns the server's idle timeout from `Keep-Alive`, in seconds.
fn keep_alive_timeout(fields: Fields<'_>) -> Option<u32> {
    // The other fields of `FieldName::Hop` have no such parameter.
    let mut parameters = fields.elements(FieldName::Hop);
    let value = parameters.find_map(|parameter| strip_start(parameter, b"timeout="))?;
    str::from_utf8(value).ok()?.trim_matches('"').parse().ok()
}

/// Maximum silence of an origin, by the state of the upload.
#[derive(Clone, Copy)]
pub(super) struct ResponseLimits {
    /// Limit after the whole request was sent.
    pub(super) after_upload: Duration,
    /// Limit while the origin does not accept the body. At most `body_timeout`.
    while_stalled: Duration,
    /// Limit while the client must send more of the body. `None`: the client's timeouts apply.
    while_client_sends: Option<Duration>,
}

impl ResponseLimits {
    /// Returns the limit for the current state of the upload; `None`: no limit.
    fn for_upload(self, upload: &Upload) -> Option<Duration> {
        match upload {
            upload if upload.is_stalled() => Some(self.while_stalled),
            upload if upload.is_over() => Some(self.after_upload),
            _ => self.while_client_sends,
        }
    }
}

/// Ready when bytes or an error were received, or with `None` after `limit` without them.
///
/// The time is counted from `since`.
pub(super) fn poll_received(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    since: Moment,
    limit: Duration,
) -> Poll<Option<io::Result<usize>>> {
    match connection.poll_receive(cx) {
        Poll::Ready(received) => Poll::Ready(Some(received)),
        Poll::Pending => connection.poll_silence(cx, since, limit).map(|()| None),
    }
}

impl Forward<'_, '_> {
    /// Sends the request on this connection, and waits for the head of the response.
    pub(super) async fn wait_for_answer(
        &mut self,
        connection: &mut Connection,
        in_flight: &InFlight<'_>,
    ) -> Result<ResponseKind, Attempt> {
        loop {
            let head = self.take_head(connection, in_flight)?;
            match head {
                Some(ResponseKind::Interim) => {
                    let flushing = poll_fn(|cx| {
                        let flushed = self.client.poll_flush(cx);
                        if flushed.is_pending() {
                            connection.poll_ahead(cx);
                        }
                        flushed
                    });
                    flushing.await?;
                }
                Some(answer) => return Ok(answer),
                None => self.receive(connection, in_flight).await?,
            }
        }
    }

    /// Waits for more bytes of a response's head, and sends the request meanwhile.
    async fn receive(
        &mut self,
        connection: &mut Connection,
        in_flight: &InFlight<'_>,
    ) -> Result<(), Attempt> {
        let limits = self.response_limits();
        // Bytes of the response that arrive before the upload is over.
        let mut early = None;
        if !self.upload.is_over() {
            let sending = self.send_until_received(connection, in_flight, limits);
            early = sending.await?;
        }
        let received = match early {
            Some(received) => received,
            None => self.receive_in_time(connection, limits).await?,
        };
        if let Ok(1..) = received {
            connection.moved();
            return Ok(());
        }
        Err(self.failed_attempt(connection, in_flight, limits, received))
    }

    /// Returns the limits of this request's response.
    pub(super) fn response_limits(&self) -> ResponseLimits {
        let settings = self.settings();
        let of_route = self.route.response_timeout;
        let after_upload = of_route.unwrap_or(settings.response_timeout);
        ResponseLimits {
            after_upload,
            while_stalled: after_upload.min(settings.body_timeout),
            // In a gRPC call, both sides may be silent until the client has ended its messages.
            while_client_sends: self.is_grpc_call.then_some(settings.tunnel_timeout),
        }
    }

    /// Sends the body. Returns at its end, or when bytes of the response or an error were received.
    ///
    /// Returns `None` at the end of the body; else the number of bytes received, or the error. A
    /// silence of the origin that is too long is the error `TimedOut`.
    async fn send_until_received(
        &mut self,
        connection: &mut Connection,
        in_flight: &InFlight<'_>,
        limits: ResponseLimits,
    ) -> Result<Option<io::Result<usize>>, ClientError> {
        let (fields, route) = (self.record.info.fields(), self.route);
        let Self {
            client,
            upload,
            sent_at,
            origin_time,
            ..
        } = self;
        let mut next_disconnect_check = Deadline::default();
        poll_fn(|cx| {
            let uploaded = upload.poll(cx, *client, connection, fields, route)?;
            origin_time.uploaded(upload.last_piece(), upload.awaits_client());
            in_flight.note_time(*origin_time);
            if uploaded.is_ready() {
                return Poll::Ready(Ok(None));
            }
            if let Poll::Ready(received) = connection.poll_receive(cx) {
                return Poll::Ready(Ok(Some(received)));
            }
            if upload.is_stalled() {
                // Nothing is read from the client now, so reading cannot detect that it has
                // disconnected.
                if client.is_disconnected(cx) {
                    return Poll::Ready(Err(ClientError::Disconnected));
                }
                // Wakes this task for the next check.
                next_disconnect_check.start(CHECK_EVERY);
                while next_disconnect_check.poll(cx).is_ready() {
                    next_disconnect_check.stop();
                    next_disconnect_check.start(CHECK_EVERY);
                }
            }
            let silent_since = (*sent_at).max(upload.last_piece());
            let Some(limit) = limits.for_upload(upload) else {
                return Poll::Pending;
            };
            let silence = connection.poll_silence(cx, silent_since, limit);
            silence.map(|()| Ok(Some(Err(io::ErrorKind::TimedOut.into()))))
        })
        .await
    }

    /// Waits for the response to a completely sent request, at most for its limit.
    async fn receive_in_time(
        &mut self,
        connection: &mut Connection,
        limits: ResponseLimits,
    ) -> Result<io::Result<usize>, ClientError> {
        let since = self.sent_at.max(self.upload.last_piece());
        self.record.awaited_since = since;
        let limit = limits.after_upload;
        let waiting = poll_fn(|cx| poll_received(connection, cx, since, limit));
        if let Some(received) = unless_disconnected(self.client, pin!(waiting)).await? {
            return Ok(received);
        }
        // After the whole machine was suspended, the runtime reports expired timers before it
        // reports received bytes. So check once more.
        tokio::task::yield_now().await;
        poll_fn(|cx| {
            Poll::Ready(Ok(match connection.poll_receive(cx) {
                Poll::Ready(received) => received,
                Poll::Pending => Err(io::ErrorKind::TimedOut.into()),
            }))
        })
        .await
    }

    /// Converts an error, or the end of the connection, to the failure of this attempt.
    ///
    /// `received`: the error, or the number of bytes received, which is 0.
    pub(super) fn failed_attempt(
        &self,
        connection: &mut Connection,
        in_flight: &InFlight<'_>,
        limits: ResponseLimits,
        received: io::Result<usize>,
    ) -> Attempt {
        let source = match received {
            Err(error) => error,
            Ok(_) => io::ErrorKind::UnexpectedEof.into(),
        };
        let is_timeout = source.kind() == io::ErrorKind::TimedOut;
        if is_timeout {
            // No further request is sent on this connection.
            connection.distrust();
        } else if !connection.has_received() && !self.has_received_head {
            return Attempt::Closed(source);
        }
        let server = in_flight.server().to_string();
        Attempt::Failed(Failure::Origin(if is_timeout {
            let limit = limits.for_upload(&self.upload);
            let limit = limit.unwrap_or(limits.after_upload);
            OriginError::ResponseTimeout { server, limit }
        } else {
            OriginError::Broken { server, source }
        }))
    }

    /// Takes the head of a response if it is complete, and begins the client's response with it.
    pub(super) fn take_head(
        &mut self,
        connection: &mut Connection,
        in_flight: &InFlight<'_>,
    ) -> Result<Option<ResponseKind>, Attempt> {
        if !connection.has_received() {
            return Ok(None);
        }
        let limit = self.settings().max_header_size;
        let invalid = |invalid| {
            let server = in_flight.server().to_string();
            Attempt::Failed(Failure::Origin(OriginError::Invalid { server, invalid }))
        };
        let request = self.record.info.head;
        let to_head = request.is_head();
        let mut table = FieldTable::new();
        let head = connection.head(&mut table, to_head, limit);
        let Some((head, head_length)) = head.map_err(invalid)? else {
            return Ok(None);
        };
        let answer = if head.is_interim() {
            self.pass_interim(&head);
            ResponseKind::Interim
        } else {
            let requested = heads::requested_upgrade(request);
            let is_switch = head.status == 101;
            // To a client over HTTP/2, any 2xx would open its WebSocket (RFC 8441, section 5).
            let opens_wrongly = request.opens_websocket() && matches!(head.status, 200..300);
            if opens_wrongly || is_switch && !heads::switches_as_requested(&head, requested) {
                return Err(invalid(InvalidResponse::Protocol));
            }
            let now = self.record_answer(&head, in_flight);
            self.last_byte = now;
            // Whether the connection may be kept after this response.
            let keeps = head.keeps_alive();
            if self.route.replaces(head.status) && !request.is_grpc() {
                // An invalid `Retry-After` counts as none.
                let delay = retry_after(head.fields(), now).ok().flatten();
                let seconds = delay.map_or(0, whole_seconds);
                let retry_after = u32::try_from(seconds).unwrap_or(u32::MAX);
                ResponseKind::Replaced { keeps, retry_after }
            } else {
                self.begin(&head, now);
                if is_switch {
                    ResponseKind::Switched
                } else if self.client.is_superseded() {
                    ResponseKind::Superseded { keeps }
                } else {
                    ResponseKind::Final { keeps }
                }
            }
        };
        let length = head.length;
        let belongs_to_client = logs_in_connection(head.fields());
        let server_idle = keep_alive_timeout(head.fields());
        self.has_received_head = true;
        connection.take_head(head_length, length);
        if let Some(seconds) = server_idle {
            connection.note_server_idle(seconds);
        }
        if belongs_to_client {
            connection.tie();
        }
        Ok(Some(answer))
    }

    /// Forwards an interim response (RFC 9110, section 15.2).
    ///
    /// A 100 is forwarded only if the client waits for it.
    fn pass_interim(&mut self, head: &ResponseHead<'_>) {
        let request = self.record.info.head;
        if request.version() == Version::Http10 {
            return;
        }
        if head.status == 100 && (self.has_continued || !request.expects_continue()) {
            return;
        }
        self.has_continued |= head.status == 100;
        let fields = |put: Put<'_>| {
            let is_cost = |_, name: &[u8]| cost::is_cost_field(&self.route.cost, name);
            // `false`: without `Trailer`, as no trailers follow.
            heads::put_passing_fields(head, false, is_cost, put);
        };
        self.client
            .send_interim(head.status, head.reason(), &fields);
    }

    /// Corrects the charge of the request by the cost that its response reports.
    fn settle(&mut self, head: &ResponseHead<'_>, in_flight: &InFlight<'_>) {
        let route = self.route;
        if !route.charge_depends_on_response() {
            return;
        }
        let billed = cost::reported_by(&route.cost, head);
        let changed = (self.record).settle(route, head.status, billed, &mut self.used);
        if let Some(cost) = changed {
            in_flight.settle(cost);
        }
    }

    /// Records the origin's response everywhere it counts. Returns the instant at which it arrived.
    fn record_answer(&mut self, head: &ResponseHead<'_>, in_flight: &InFlight<'_>) -> Moment {
        let now = self.record.now();
        let took = self.origin_took(now);
        let waited = || self.origin_time.since(self.sent_at, now);
        let retry_after = || retry_after(head.fields(), now);
        in_flight.answered(took, head.status, retry_after, waited, now);
        self.record.note_origin_answered(head.status, took, now);
        self.settle(head, in_flight);
        if self.settings().on_client_gone == OnClientDisconnect::Finish {
            self.is_stream = self.counts_only_to_head(head);
        }
        if self.route.cost.learned().is_some() && self.counts_only_to_head(head) {
            // `true`: the origin answered.
            self.end_work(in_flight, true);
        }
        now
    }

    /// Offers the head to the followers that wait for the same answer.
    ///
    /// Returns whether the answer is shared with them.
    fn offer(&mut self, head: &ResponseHead<'_>, now: Moment) -> bool {
        let (record, route) = (&*self.record, self.route);
        let is_limited = !route.limits.is_empty();
        let passing = |put: Put<'_>| {
            let is_dropped = dropped_fields(record, is_limited);
            // `false`: without `Trailer`, as trailers are not shared.
            heads::put_passing_fields(head, false, is_dropped, put);
        };
        self.client.offer(&OriginHead {
            head,
            passing: &passing,
            billed: cost::reported_by(&route.cost, head),
            sent: self.sent_at,
            arrived: now,
        })
    }

    /// Begins the client's response.
    fn begin(&mut self, head: &ResponseHead<'_>, now: Moment) {
        if self.record.shared.is_led() && !self.offer(head, now) {
            self.record.stop_sharing();
        }
        let record = &*self.record;
        let outcome = record.outcome();
        let is_limited = outcome.is_some_and(|outcome| !outcome.verdicts.is_empty());
        let has_trailers = record.info.head.takes_trailers() && head.length == BodyLength::Chunked;
        if has_trailers {
            let named = head.fields().elements(FieldName::Connection);
            self.connection_options = named.map(Box::from).collect();
        }
        let fields = |put: Put<'_>| {
            response_fields::put_all(record, MadeBy::Origin, put, |put| {
                let is_dropped = dropped_fields(record, is_limited);
                heads::put_passing_fields(head, has_trailers, is_dropped, put);
            });
        };
        let upgrade = head.fields().first(FieldName::Upgrade);
        self.client.begin(&Response {
            status: head.status,
            reason: head.reason(),
            length: head.length,
            announced_length: head.announced_length,
            date: (!head.fields().has(FieldName::Date)).then_some(now),
            upgrade: upgrade.filter(|_| head.status == 101),
            fields: &fields,
        });
    }
}

/// Returns the test for fields of the origin's response that are not forwarded.
///
/// The gateway reads or replaces these fields. `is_limited`: the request has limits, so the gateway
/// may write its own rate limit fields.
fn dropped_fields<'s>(
    record: &'s RequestRecord<'_>,
    is_limited: bool,
) -> impl Fn(FieldName, &[u8]) -> bool + 's {
    // The gateway writes the request id itself. The origin may return the same id, or another one.
    let own_id = record.request_id().map(|(name, _)| name.as_bytes());
    let route = record.route();
    move |known, name| {
        own_id.is_some_and(|own| name.eq_ignore_ascii_case(own))
            || route.is_some_and(|route| {
                is_limited && ratelimit_headers::replaces(&route.headers, known)
                    || cost::is_cost_field(&route.cost, name)
                    || ratelimit_headers::is_about_sharing(route, name)
            })
    }
}
