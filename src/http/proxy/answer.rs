//! The head of an origin's response, and the part of it that the client gets.

use super::forward::{Answer, Attempt, Failure, Forward};
use super::{heads, ratelimit_headers};
use crate::http::downstream::{ClientStream, Response};
use crate::http::message::{BodyLength, FieldName, InvalidResponse, ResponseHead, Version};
use crate::http::upstream::{Connection, InFlight, OriginError};

impl<C: ClientStream> Forward<'_, '_, C> {
    /// Takes the head of a response if it is complete, and begins the client's response with it.
    pub(super) fn take_head(
        &mut self,
        connection: &mut Connection,
        in_flight: &InFlight<'_>,
    ) -> Result<Option<Answer>, Attempt> {
        let received = connection.received();
        if received.is_empty() {
            return Ok(None);
        }
        let limit = self.settings().max_header_size;
        let invalid = |invalid| {
            let server = in_flight.server().to_string();
            Attempt::Failed(Failure::Origin(OriginError::Invalid { server, invalid }))
        };
        let to_head = self.info.head.is_head();
        let parsed = ResponseHead::parse(received, to_head).map_err(invalid)?;
        let size = parsed.as_ref().map_or(received.len(), |(_, end)| *end);
        if size > limit {
            return Err(invalid(InvalidResponse::HeadTooLarge));
        }
        let Some((head, end)) = parsed else {
            return Ok(None);
        };
        let answer = if head.is_interim() {
            self.pass_interim(&head);
            Answer::Interim
        } else {
            let asked = heads::asked_upgrade(self.info.head);
            let switches = head.status == 101;
            if switches && !heads::is_switched_as_asked(&head, asked) {
                return Err(invalid(InvalidResponse::Protocol));
            }
            self.begin(&head, in_flight);
            if switches {
                Answer::Switched
            } else {
                let keeps = head.keeps_alive();
                Answer::Final { keeps }
            }
        };
        let length = head.length;
        self.any_head = true;
        connection.take_head(end, length);
        Ok(Some(answer))
    }

    /// Forwards an interim response (RFC 9110, section 15.2).
    ///
    /// A 100 is not forwarded if the client does not wait for one.
    fn pass_interim(&mut self, head: &ResponseHead<'_>) {
        let request = self.info.head;
        if request.version() == Version::Http10 {
            return;
        }
        if head.status == 100 && (self.continued || !request.expects_continue()) {
            return;
        }
        self.continued |= head.status == 100;
        let fields = |put: &mut dyn FnMut(&[u8], &[u8])| {
            heads::each_passing(head, false, |_| false, put);
        };
        self.client.interim(head.status, head.reason(), &fields);
    }

    /// Begins the client's response.
    fn begin(&mut self, head: &ResponseHead<'_>, in_flight: &InFlight<'_>) {
        let now = self.worker.pacer.now();
        let took = now.since(self.began);
        in_flight.answered(took);
        self.record.origin_took = Some(took);
        self.record.answer_began(head.status);
        let (gateway, which) = (self.gateway, self.route.headers);
        let outcome = self.record.outcome.as_ref();
        let is_limited = outcome.is_some_and(|outcome| !outcome.verdicts.is_empty());
        let replaced = |known| is_limited && ratelimit_headers::replaces(which, known);
        let trailers = self.info.head.takes_trailers();
        if trailers && head.length == BodyLength::Chunked {
            let named = head.fields().elements(FieldName::Connection);
            self.named_away = named.map(Box::from).collect();
        }
        let fields = |put: &mut dyn FnMut(&[u8], &[u8])| {
            let announced = trailers && head.length == BodyLength::Chunked;
            heads::each_passing(head, announced, replaced, put);
            if let Some(outcome) = outcome {
                ratelimit_headers::write(put, which, gateway, outcome, Some(took));
            }
        };
        self.client.begin(&Response {
            status: head.status,
            reason: head.reason(),
            length: head.length,
            told_length: head.told_length,
            date: (!head.fields().has(FieldName::Date)).then_some(now),
            upgrade: head
                .fields()
                .first(FieldName::Upgrade)
                .filter(|_| head.status == 101),
            fields: &fields,
        });
    }
}
