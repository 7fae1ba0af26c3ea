//! The fields of a response: what the gateway adds to each, and what the route makes of them.

use super::record::RequestRecord;
use super::{ratelimit_headers, rewrite};
use crate::http::message::Put;

/// Who made a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MadeBy {
    Origin,
    Gateway,
}

/// Puts the fields of `own` and those that the gateway adds, as the route of the request edits them.
pub(super) fn put(
    record: &RequestRecord<'_>,
    made_by: MadeBy,
    put: Put<'_>,
    own: impl FnOnce(Put<'_>),
) {
    let all = |put: Put<'_>| {
        own(put);
        put_request_id(record, put);
        let Some(route) = record.route() else { return };
        if let Some(outcome) = record.outcome() {
            ratelimit_headers::write(put, route, record, outcome);
        }
        if made_by == MadeBy::Origin {
            ratelimit_headers::write_shared(put, route, record);
        }
    };
    record.put_with_session(put, |put| match record.route() {
        None => all(put),
        Some(route) => {
            let edits = [&route.response_fields, &route.answer_fields];
            let count = if made_by == MadeBy::Origin { 1 } else { 2 };
            rewrite::edit(record.info, route, &edits[..count], put, all);
        }
    });
}

/// Puts the field of the request's id, if requests have one.
fn put_request_id(record: &RequestRecord<'_>, put: Put<'_>) {
    if let Some((name, id)) = record.request_id() {
        put(name.as_bytes(), id.as_bytes());
    }
}

/// The fields of a response that has a new session or ticket.
#[derive(Debug, Default)]
pub(super) struct RoomFields {
    pub(super) cookies: Vec<String>,
    /// For programs, which may keep no cookies: the name of a field, and its value.
    pub(super) own: Option<(&'static str, String)>,
}

impl RoomFields {
    pub(super) fn put(&self, put: Put<'_>) {
        for cookie in &self.cookies {
            put(b"Set-Cookie", cookie.as_bytes());
        }
        if let Some((name, value)) = &self.own {
            put(name.as_bytes(), value.as_bytes());
        }
    }
}
