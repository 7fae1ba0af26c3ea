//! Responses that the gateway creates itself.
//!
//! `redirect` and `shared` build two special ones; `reply_body` sends the bodies. *Limits* reject
//! by key, the *gate* of an origin rejects for that origin. A *waiting room* lets visitors wait.

mod redirect;
mod shared;

use std::borrow::Cow;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use config::{Media, PageContent, PageValue, Route};
use http::StatusCode;

use super::grpc::{self, GrpcStatus};
use super::page::{ChosenPage, PageBody, PageValues};
use super::record::RequestRecord;
use super::reply_body::ReplyBody;
use super::request_info::UnfitRequest;
use super::response_fields::{self, MadeBy, RoomFields};
use super::retry_after::RetryAfter;
use super::{cors, rewrite};
use crate::gate::GateRejection;
use crate::http::downstream::{Aborted, ClientStream, Response};
use crate::http::message::{BodyLength, Buffer, Put, put_number};
use crate::observe::metrics::{GateRejected, Rejected};
use crate::origin::OriginError;
use shared::SharedReply;

/// A response of the gateway: a short text, a page, or a shared answer.
pub(super) struct Reply<'a> {
    pub(super) status: u16,
    /// Value of `Retry-After`.
    retry_after: Option<RetryAfter>,
    /// Fields that other responses do not have.
    more_fields: MoreFields,
    body: Body<'a>,
}

/// Body of a response, unless a page of the route replaces it.
pub(super) enum Body<'a> {
    Text(Cow<'a, str>),
    Json(String),
    /// Page of a waiting room, and its additional values.
    RoomPage(&'a Arc<PageContent>, Box<PageValues>),
    /// A shared answer of the origin.
    Shared(Box<SharedReply>),
}

/// Fields that only some responses have.
enum MoreFields {
    None,
    /// `Allow`, with the methods that the gateway supports.
    Allow,
    /// `Location`, with this URL.
    Location(Box<str>),
    /// Fields of a waiting room.
    Room(Box<RoomFields>),
    /// CORS fields of the response to a preflight.
    Preflight,
}

impl From<UnfitRequest> for Reply<'_> {
    fn from(unfit: UnfitRequest) -> Self {
        let more_fields = match unfit {
            UnfitRequest::Connect => MoreFields::Allow,
            _ => MoreFields::None,
        };
        Self {
            more_fields,
            ..Self::plain(unfit.status(), format!("{unfit}\n"))
        }
    }
}

impl<'a> Reply<'a> {
    /// Returns a response with a plain text.
    pub(super) fn plain(status: u16, text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            status,
            retry_after: None,
            more_fields: MoreFields::None,
            body: Body::Text(text.into()),
        }
    }

    /// Returns a rejection with the status and the body of the route.
    fn of_rejection(route: &'a Route) -> Self {
        Self::plain(route.reject_status, route.reject_body.as_str())
    }

    /// Returns the response to a request that its limits rejected.
    pub(super) fn rejected(
        route: &'a Route,
        reason: Rejected,
        retry_after: Option<Duration>,
    ) -> Self {
        let mut reply = match reason {
            Rejected::Burst | Rejected::MaxWait | Rejected::InFlight => Self::of_rejection(route),
            _ => Self::plain(503, "Service Unavailable\n"),
        };
        reply.retry_after = retry_after.map(match reason {
            Rejected::Burst | Rejected::MaxWait => RetryAfter::Exact,
            _ => RetryAfter::Estimate,
        });
        reply
    }

    /// Returns the response to a request that the origin's gate rejected.
    pub(super) fn rejected_at_gate(route: &'a Route, rejection: &GateRejection) -> Self {
        let mut reply = match rejection.reason {
            GateRejected::Queue | GateRejected::MaxWait => Self::of_rejection(route),
            _ => Self::plain(503, "Service Unavailable\n"),
        };
        reply.retry_after = Some(RetryAfter::Estimate(rejection.retry_after));
        reply
    }

    /// Returns the response to a request that got none from the origin.
    pub(super) fn unanswered(error: &OriginError) -> Self {
        Self {
            retry_after: error.retry_after().map(RetryAfter::Estimate),
            ..Self::of_status(error.status())
        }
    }

    /// Returns the response that replaces the origin's.
    ///
    /// `retry_after`: the origin's `Retry-After` in seconds; 0 if it had none.
    pub(super) fn replacing(status: u16, retry_after: u32) -> Self {
        let delay = Duration::from_secs(retry_after.into());
        Self {
            retry_after: (retry_after > 0).then_some(RetryAfter::Estimate(delay)),
            ..Self::of_status(status)
        }
    }

    /// Returns a response whose text is the reason phrase of its status.
    pub(super) fn of_status(status: u16) -> Self {
        let reason = reason_phrase(status).unwrap_or("Bad Gateway");
        Self::plain(status, format!("{reason}\n"))
    }

    /// Returns the response to a CORS preflight.
    pub(super) fn preflight() -> Self {
        Self {
            more_fields: MoreFields::Preflight,
            ..Self::plain(204, "")
        }
    }

    /// Returns the response of a route in maintenance, which ends after `left`.
    pub(super) fn maintenance(left: Duration) -> Self {
        Self::of_status(503).with_retry_after(left)
    }

    /// Adds a `Retry-After` of `span` to the response.
    pub(super) fn with_retry_after(mut self, span: Duration) -> Self {
        self.retry_after = Some(RetryAfter::Exact(span));
        self
    }

    /// Returns the response to a visitor of a waiting room, with these fields.
    pub(super) fn of_room(status: u16, body: Body<'a>, fields: RoomFields) -> Self {
        Self {
            more_fields: MoreFields::Room(Box::new(fields)),
            body,
            ..Self::plain(status, "")
        }
    }

    /// Returns the text for a gRPC call, which gets no page.
    fn message(&self) -> &str {
        match &self.body {
            Body::Text(text) => text,
            _ => reason_phrase(self.status).unwrap_or_default(),
        }
    }

    /// Returns the page of the response, if it has one.
    fn page<'r>(&self, record: &RequestRecord<'r>) -> Option<ChosenPage<'r>>
    where
        'a: 'r,
    {
        match (&self.more_fields, &self.body) {
            (_, Body::RoomPage(content, _)) => {
                let by_accept = false;
                Some(ChosenPage { content, by_accept })
            }
            // The body of a waiting room has more information than a page of the route.
            (MoreFields::Room(_), _) => None,
            _ => ChosenPage::of(record, self.status),
        }
    }

    /// Calls `put` with the fields of the response: `own`, and the fields of every response.
    fn each_field(&self, record: &RequestRecord<'_>, put: Put<'_>, own: impl FnOnce(Put<'_>)) {
        match &self.more_fields {
            MoreFields::Room(room) => {
                rewrite::put_uncached(put, |put| {
                    response_fields::put_all(record, MadeBy::Gateway, put, own);
                });
                // A route cannot remove these fields: without them no visitor would ever be
                // admitted.
                room.put(put);
            }
            MoreFields::Preflight => {
                response_fields::put_all(record, MadeBy::Gateway, put, own);
                if let Some(cors) = record.route().and_then(|route| route.cors.as_ref()) {
                    cors::put_preflight(cors, record.info, put);
                }
            }
            _ => response_fields::put_all(record, MadeBy::Gateway, put, own),
        }
    }

    /// Begins the response to a gRPC call, which has only a head: "Trailers-Only".
    ///
    /// gRPC clients read no other status and no body.
    fn begin_grpc(&self, client: &mut dyn ClientStream, record: &RequestRecord<'_>) -> Buffer {
        let status = GrpcStatus::of_http(self.status);
        let fields = |put: Put<'_>| {
            put(b"content-type", grpc::CONTENT_TYPE);
            put_number(put, b"grpc-status", status as u8);
            put(b"grpc-message", grpc::encode(self.message()).as_bytes());
            if let Some(after) = self.retry_after {
                put_number(put, b"grpc-retry-pushback-ms", after.millis());
            }
            // The route cannot change the fields of the protocol.
            let mut put_other = |name: &[u8], value: &[u8]| {
                if !grpc::is_of_protocol(name) {
                    put(name, value);
                }
            };
            self.each_field(record, &mut put_other, |_| {});
        };
        client.begin(&Response {
            status: 200,
            reason: b"",
            length: BodyLength::None,
            announced_length: None,
            date: Some(record.answered_at()),
            upgrade: None,
            fields: &fields,
        });
        Buffer::take()
    }

    /// Returns the values for the response's page.
    fn page_values(&self, record: &RequestRecord<'_>) -> PageValues {
        let mut values = match &self.body {
            Body::RoomPage(_, values) => PageValues::clone(values),
            _ => PageValues::new(),
        };
        values.push((PageValue::Status, self.status.to_string()));
        if let Some(after) = self.retry_after {
            values.push((PageValue::RetryAfter, after.seconds().to_string()));
        }
        if let Some((_, id)) = record.request_id() {
            values.push((PageValue::RequestId, id.to_owned()));
        }
        values
    }

    /// Begins the response, with the fields for the limits. Returns the body to send.
    ///
    /// The body to send is empty for `HEAD`.
    pub(super) fn begin(
        &self,
        client: &mut dyn ClientStream,
        record: &mut RequestRecord<'_>,
    ) -> ReplyBody {
        if let Body::Shared(shared) = &self.body {
            return shared.begin(self.status, client, record);
        }
        // A 204 has no body, and no fields that describe one (RFC 9110, section 15.3.5).
        let is_empty = self.status == 204;
        let is_to_head = record.info.head.is_head();
        record.status = self.status;
        if record.info.head.is_grpc() {
            return ReplyBody::new(self.begin_grpc(client, record));
        }
        let page = self.page(record);
        let (text, media) = match &self.body {
            Body::Text(text) => (&**text, Media::Plain),
            Body::Json(text) => (text.as_str(), Media::Json),
            _ => ("", Media::Plain),
        };
        let (media, by_accept) = match &page {
            Some(page) => (page.content.media, page.by_accept),
            None => (media, false),
        };
        let page = page.map(|page| PageBody::new(page.content, self.page_values(record)));
        let length = match &page {
            Some(page) => page.length(),
            None => text.len() as u64,
        };
        if !is_to_head {
            record.add_sent(length);
        }
        let own = |put: Put<'_>| {
            if !is_empty {
                put(b"Content-Type", media.content_type().as_bytes());
            }
            if by_accept {
                put(b"Vary", b"Accept");
            }
            match &self.more_fields {
                MoreFields::None | MoreFields::Room(_) | MoreFields::Preflight => {}
                MoreFields::Allow => put(b"Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
                MoreFields::Location(url) => put(b"Location", url.as_bytes()),
            }
            if let Some(after) = self.retry_after {
                put_number(put, b"Retry-After", after.seconds());
            }
        };
        let fields = |put: Put<'_>| self.each_field(record, put, own);
        client.begin(&Response {
            status: self.status,
            reason: reason_phrase(self.status).unwrap_or_default().as_bytes(),
            length: if is_to_head || is_empty {
                BodyLength::None
            } else {
                BodyLength::Length(length)
            },
            announced_length: (!is_empty).then_some(length),
            date: Some(record.answered_at()),
            upgrade: None,
            fields: &fields,
        });
        let mut piece = Buffer::for_body();
        match page {
            _ if is_to_head => ReplyBody::new(piece),
            Some(page) => ReplyBody::of_page(piece, page),
            None => {
                piece.put(text.as_bytes());
                ReplyBody::new(piece)
            }
        }
    }
}

/// Returns the reason phrase of a status.
fn reason_phrase(status: u16) -> Option<&'static str> {
    StatusCode::from_u16(status).ok()?.canonical_reason()
}

/// Sends a response of the gateway.
#[expect(clippy::needless_pass_by_value, reason = "it is not needed for long")]
pub(super) fn send<'c>(
    reply: Reply<'_>,
    client: &'c mut dyn ClientStream,
    record: &mut RequestRecord<'_>,
) -> impl Future<Output = Result<(), Aborted>> + use<'c> {
    let mut body = reply.begin(client, record);
    poll_fn(move |cx| body.poll_send(client, cx))
}
