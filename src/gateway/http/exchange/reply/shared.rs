//! Response from a shared answer of the origin (collapse): the whole answer, a range, or a 304.
//!
//! `crate::collapse` keeps the answer.

use std::ops::Range;
use std::sync::Arc;

use limit::Moment;

use super::super::record::RequestRecord;
use super::super::reply_body::{ReplyBody, SharedBody};
use super::super::response_fields::{self, MadeBy};
use super::{Body, Reply, reason_phrase};
use crate::collapse::{Preconditions, Presented, SharedAnswer};
use crate::http::downstream::{ClientStream, Response};
use crate::http::message::{BodyLength, Buffer, Put, READ_SIZE, put_number, strip_start};

/// A shared answer, and the part of it that a request gets.
pub(in crate::http::exchange) struct SharedReply {
    answer: Arc<SharedAnswer>,
    /// Part of the answer that the preconditions and the range select.
    presented: Presented,
    /// Age of the answer, in seconds.
    age: u64,
}

impl Reply<'_> {
    /// Returns the response from a shared answer, given the preconditions of the request.
    pub(in crate::http::exchange) fn shared(
        answer: Arc<SharedAnswer>,
        preconditions: &Preconditions<'_>,
        now: Moment,
    ) -> Self {
        let presented = preconditions.present(&answer.head, answer.body().length());
        let status = match presented {
            Presented::Whole => answer.head.status,
            Presented::Part(_) => 206,
            Presented::NotModified => 304,
            Presented::Unsatisfiable => 416,
        };
        let age = answer.age(now).as_secs();
        let shared = SharedReply {
            answer,
            presented,
            age,
        };
        Self {
            body: Body::Shared(Box::new(shared)),
            ..Self::plain(status, "")
        }
    }
}

impl SharedReply {
    /// Returns whether the response gets this field of the origin's answer.
    ///
    /// A 304 gets no fields about the content (RFC 9110, section 15.4.5), a 416 only `Date`.
    fn passes(&self, name: &[u8]) -> bool {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let is_of_content = || strip_start(name, b"content-").is_some();
        match self.presented {
            Presented::Whole | Presented::Part(_) => true,
            Presented::NotModified => is(b"content-location") || !is_of_content(),
            Presented::Unsatisfiable => is(b"date"),
        }
    }

    /// Begins the response, and returns its body.
    pub(super) fn begin(
        &self,
        status: u16,
        client: &mut dyn ClientStream,
        record: &mut RequestRecord<'_>,
    ) -> ReplyBody {
        let head = &self.answer.head;
        let length = self.answer.body().length();
        let own_phrase = || reason_phrase(status).unwrap_or_default().as_bytes();
        let (phrase, range) = match &self.presented {
            Presented::Whole => (&*head.reason, 0..length),
            Presented::Part(range) => (own_phrase(), range.clone()),
            Presented::NotModified | Presented::Unsatisfiable => (own_phrase(), 0..0),
        };
        let has_body = !matches!(status, 204 | 304);
        let to_head = record.info.head.is_head();
        record.status = status;
        let body_length = range.len() as u64;
        if !to_head {
            record.add_sent(body_length);
        }
        let record = &*record;
        let own = |put: Put<'_>| {
            for (name, value) in head.fields.iter() {
                if self.passes(name) {
                    put(name, value);
                }
            }
            put_number(put, b"Age", self.age);
            match &self.presented {
                Presented::Part(Range { start, end }) => {
                    let part = format!("bytes {start}-{}/{length}", end - 1);
                    put(b"Content-Range", part.as_bytes());
                }
                Presented::Unsatisfiable => {
                    put(b"Content-Range", format!("bytes */{length}").as_bytes());
                }
                Presented::Whole | Presented::NotModified => {}
            }
        };
        let fields = |put: Put<'_>| response_fields::put_all(record, MadeBy::Origin, put, own);
        client.begin(&Response {
            status,
            reason: phrase,
            length: if to_head || !has_body {
                BodyLength::None
            } else {
                BodyLength::Length(body_length)
            },
            announced_length: has_body.then_some(body_length),
            date: None,
            upgrade: None,
            fields: &fields,
        });
        // Range of the answer whose bytes are sent.
        let part = if to_head { 0..0 } else { range };
        let body = self.answer.body();
        if part.len() <= READ_SIZE {
            // A short body goes into the same buffer as the head.
            let mut piece = Buffer::for_body();
            if body.read(part.clone(), |bytes| piece.put(bytes)).is_some() {
                return ReplyBody::new(piece);
            }
        }
        ReplyBody::Shared(Box::new(SharedBody::new(body, part)))
    }
}
