//! Responses that the gateway creates itself.

mod redirect;
mod room;
mod shared;

use std::borrow::Cow;
use std::future::poll_fn;
use std::time::Duration;

use config::{Media, Route};
use http::StatusCode;

use super::grpc::{self, GrpcStatus};
use super::page::{ChosenPage, PageBody, PageValues};
use super::ratelimit_headers;
use super::record::RequestRecord;
use super::reply_body::ReplyBody;
use super::request_info::UnfitRequest;
use super::retry_after::RetryAfter;
use super::room_fields::RoomFields;
use super::{cors, request_id, rewrite};
use crate::gate::GateRejection;
use crate::http::downstream::{Aborted, ClientError, ClientStream, Response};
use crate::http::message::{BodyLength, Buffer};
use crate::observe::metrics::{GateRejected, Rejected};
use crate::origin::OriginError;
use room::RoomBody;
use shared::SharedReply;

/// A response of the gateway's own: a short text in plain, or a page of the route.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    pub(super) status: u16,
    retry_after: Option<RetryAfter>,
    more: MoreFields,
    body: Body<'a>,
}

/// What is sent if the route has no page for the status.
#[derive(Debug)]
enum Body<'a> {
    Text(Cow<'a, str>),
    /// For a visitor who waits in the room of the origin.
    Room(Box<RoomBody<'a>>),
    /// An answer of the origin that several requests get.
    Shared(Box<SharedReply>),
}

/// The fields that only some responses have.
#[derive(Debug)]
enum MoreFields {
    None,
    /// `Allow`, with the methods that the gateway supports.
    Allow,
    /// `Location`, with this URL.
    Location(Box<str>),
    /// Those of a waiting room.
    Room(Box<RoomFields>),
    /// Those of the answer to a preflight.
    Preflight,
}

impl<'a> Reply<'a> {
    pub(super) fn plain(status: u16, text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            status,
            retry_after: None,
            more: MoreFields::None,
            body: Body::Text(text.into()),
        }
    }

    /// The response to a request that the gateway does not accept.
    pub(super) fn unfit(unfit: UnfitRequest) -> Self {
        match unfit {
            UnfitRequest::Connect => Self {
                more: MoreFields::Allow,
                ..Self::plain(405, "This gateway does not support CONNECT\n")
            },
            UnfitRequest::Asterisk => Self::plain(400, "Only OPTIONS can have the target *\n"),
            UnfitRequest::Nul => Self::plain(400, "A path cannot have %00\n"),
            UnfitRequest::Host => Self::plain(400, "One valid Host field is required\n"),
            UnfitRequest::FieldTwice => Self::plain(
                400,
                "A field that limits or routes read can only be there once\n",
            ),
            UnfitRequest::ArgumentTwice => Self::plain(
                400,
                "An argument that limits or routes read can only be there once\n",
            ),
            UnfitRequest::Cookie => Self::plain(
                400,
                "A cookie that limits or routes read stands inside another one\n",
            ),
            UnfitRequest::Expectation => Self::plain(417, "Expect can only be 100-continue\n"),
        }
    }

    /// A rejection with the status and the body that the route has for it.
    fn of_rejection(route: &'a Route) -> Self {
        Self::plain(route.reject_status, route.reject_body.as_str())
    }

    /// The response to a request that its limits rejected.
    pub(super) fn rejected(
        route: &'a Route,
        reason: Rejected,
        retry_after: Option<Duration>,
    ) -> Self {
        let reply = match reason {
            Rejected::Burst | Rejected::MaxWait | Rejected::InFlight => Self::of_rejection(route),
            Rejected::Keys
            | Rejected::Store
            | Rejected::Restart
            | Rejected::Paused
            | Rejected::Stopping => Self::plain(503, "Service Unavailable\n"),
        };
        let when = match reason {
            Rejected::Burst | Rejected::MaxWait => RetryAfter::Turn,
            _ => RetryAfter::Guess,
        };
        Self {
            retry_after: retry_after.map(when),
            ..reply
        }
    }

    /// The response to a request that the origin's gate rejected.
    pub(super) fn rejected_at_gate(route: &'a Route, rejection: &GateRejection) -> Self {
        let reply = match rejection.reason {
            GateRejected::Queue | GateRejected::MaxWait => Self::of_rejection(route),
            GateRejected::MaxQueue
            | GateRejected::Timeout
            | GateRejected::Stopping
            | GateRejected::Outage => Self::plain(503, "Service Unavailable\n"),
        };
        Self {
            retry_after: Some(RetryAfter::Guess(rejection.retry_after)),
            ..reply
        }
    }

    /// The response if the origin gave none.
    pub(super) fn unanswered(error: &OriginError) -> Self {
        Self {
            retry_after: error.retry_after().map(RetryAfter::Guess),
            ..Self::of_status(error.status())
        }
    }

    /// The response in place of the origin's, which may have had `Retry-After`; 0: it had none.
    pub(super) fn replacing(status: u16, retry_after: u32) -> Self {
        let after = Duration::from_secs(retry_after.into());
        Self {
            retry_after: (retry_after > 0).then_some(RetryAfter::Guess(after)),
            ..Self::of_status(status)
        }
    }

    /// The response to an error that the client caused.
    pub(super) fn client_error(error: ClientError) -> Self {
        Self::of_status(error.status())
    }

    /// The response of a status, whose text is its reason.
    pub(super) fn of_status(status: u16) -> Self {
        let reason = reason(status).unwrap_or("Bad Gateway");
        Self::plain(status, format!("{reason}\n"))
    }

    /// The answer to a preflight of a browser.
    pub(super) fn preflight() -> Self {
        Self {
            more: MoreFields::Preflight,
            ..Self::plain(204, "")
        }
    }

    /// The response of a route in maintenance, which ends after `left`.
    pub(super) fn maintenance(left: Duration) -> Self {
        Self {
            retry_after: Some(RetryAfter::Turn(left)),
            ..Self::of_status(503)
        }
    }

    /// The same response, which says when to come again.
    pub(super) fn after(self, span: Duration) -> Self {
        Self {
            retry_after: Some(RetryAfter::Turn(span)),
            ..self
        }
    }

    /// Its text for a call of gRPC, whose message is no page.
    fn message(&self) -> &str {
        match &self.body {
            Body::Text(text) => text,
            Body::Room(_) | Body::Shared(_) => reason(self.status).unwrap_or_default(),
        }
    }

    /// The page of the response, if it has one.
    fn page<'r>(&self, record: &RequestRecord<'r>) -> Option<ChosenPage<'r>>
    where
        'a: 'r,
    {
        match &self.body {
            Body::Text(_) | Body::Shared(_) => ChosenPage::of(record, self.status),
            // It says more than any page of the route.
            Body::Room(room) => room.content().map(ChosenPage::of_all),
        }
    }

    /// Begins the response to a call of gRPC, which is a head alone: "Trailers-Only".
    ///
    /// Its clients read no other status and no body.
    fn begin_grpc<C: ClientStream>(&self, client: &mut C, record: &RequestRecord<'_>) -> Buffer {
        let limited = record.limited_route();
        let mut number = itoa::Buffer::new();
        let status = number.format(GrpcStatus::of_http(self.status).number());
        let others = |put: &mut dyn FnMut(&[u8], &[u8])| {
            request_id::put(record, put);
            if let Some((route, outcome)) = limited {
                ratelimit_headers::write(put, route, record, outcome);
            }
        };
        let fields = |put: &mut dyn FnMut(&[u8], &[u8])| {
            put(b"content-type", grpc::CONTENT_TYPE);
            put(b"grpc-status", status.as_bytes());
            put(b"grpc-message", grpc::message(self.message()).as_bytes());
            if let Some(after) = self.retry_after {
                let mut millis = itoa::Buffer::new();
                put(
                    b"grpc-retry-pushback-ms",
                    millis.format(after.millis()).as_bytes(),
                );
            }
            // What the protocol says is no matter of the route.
            let mut put_other = |name: &[u8], value: &[u8]| {
                if !grpc::is_of_protocol(name) {
                    put(name, value);
                }
            };
            record.put_with_session(&mut put_other, |put| edited(record, put, others));
            self.put_room(put);
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

    /// Begins the response, with the fields for the limits, and returns the body to send.
    ///
    /// The body is empty for `HEAD`.
    pub(super) fn begin<C: ClientStream>(
        &self,
        client: &mut C,
        record: &mut RequestRecord<'_>,
    ) -> ReplyBody {
        if let Body::Shared(shared) = &self.body {
            return shared.begin(client, record);
        }
        // A response of this status has no body, and nothing that describes one (RFC 9110, 15.3.5).
        let is_empty = self.status == 204;
        let to_head = record.is_head();
        record.answer_began(self.status);
        if record.is_grpc() {
            return ReplyBody::new(self.begin_grpc(client, record));
        }
        let page = self.page(record);
        let (text, media) = match &self.body {
            Body::Text(text) => (&**text, Media::Plain),
            Body::Shared(_) => ("", Media::Plain),
            Body::Room(room) => room.text(),
        };
        let (media, varies) = match &page {
            Some(page) => (page.content.media, page.varies),
            None => (media, false),
        };
        let page = page.map(|page| {
            let values = PageValues {
                status: self.status,
                retry_after: self.retry_after.map(RetryAfter::seconds),
                request_id: record.request_id().map(|(_, id)| id),
                room: match &self.body {
                    Body::Room(room) => room.values(),
                    _ => None,
                },
            };
            PageBody::new(page.content, &values)
        });
        let length = match &page {
            Some(page) => page.length(),
            None => text.len() as u64,
        };
        if !to_head {
            record.sent(length);
        }
        let limited = record.limited_route();
        let own = |put: &mut dyn FnMut(&[u8], &[u8])| {
            request_id::put(record, put);
            if !is_empty {
                put(b"Content-Type", media.content_type().as_bytes());
            }
            if varies {
                put(b"Vary", b"Accept");
            }
            match &self.more {
                MoreFields::None | MoreFields::Room(_) | MoreFields::Preflight => {}
                MoreFields::Allow => put(b"Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
                MoreFields::Location(url) => put(b"Location", url.as_bytes()),
            }
            if let Some(after) = self.retry_after {
                put(
                    b"Retry-After",
                    itoa::Buffer::new().format(after.seconds()).as_bytes(),
                );
            }
            if let Some((route, outcome)) = limited {
                ratelimit_headers::write(put, route, record, outcome);
            }
        };
        let fields = |put: &mut dyn FnMut(&[u8], &[u8])| {
            record.put_with_session(put, |put| match self.more {
                MoreFields::Room(_) => rewrite::uncached(put, |put| edited(record, put, own)),
                _ => edited(record, put, own),
            });
            if let MoreFields::Preflight = self.more
                && let Some((route, info)) = record.route().zip(record.info())
                && let Some(cors) = &route.cors
            {
                cors::put_preflight(cors, info, put);
            }
            self.put_room(put);
        };
        client.begin(&Response {
            status: self.status,
            reason: reason(self.status).unwrap_or_default().as_bytes(),
            length: if to_head || is_empty {
                BodyLength::None
            } else {
                BodyLength::Length(length)
            },
            announced_length: (!is_empty).then_some(length),
            date: Some(record.answered_at()),
            upgrade: None,
            fields: &fields,
        });
        let mut piece = Buffer::take();
        piece.clear_for_body();
        match page {
            _ if to_head => ReplyBody::new(piece),
            Some(page) => ReplyBody::of_page(piece, page),
            None => {
                piece.put(text.as_bytes());
                ReplyBody::new(piece)
            }
        }
    }
}

/// The reason phrase of a status.
fn reason(status: u16) -> Option<&'static str> {
    StatusCode::from_u16(status).ok()?.canonical_reason()
}

/// Calls `put` with the fields of `each` as the route of the request leaves them.
fn edited(
    record: &RequestRecord<'_>,
    put: &mut dyn FnMut(&[u8], &[u8]),
    each: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])),
) {
    match record.route() {
        Some(route) => {
            let edits = [&route.response_fields, &route.answer_fields];
            rewrite::edit(record, &edits, put, each);
        }
        None => each(put),
    }
}

/// Sends a response of the gateway's own.
#[expect(
    clippy::needless_pass_by_value,
    reason = "it need not be kept while its bytes are sent"
)]
pub(super) fn send<'c, C: ClientStream>(
    reply: Reply<'_>,
    client: &'c mut C,
    record: &mut RequestRecord<'_>,
) -> impl Future<Output = Result<(), Aborted>> + use<'c, C> {
    let mut body = reply.begin(client, record);
    poll_fn(move |cx| body.poll_send(client, cx))
}
