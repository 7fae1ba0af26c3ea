//! Fields of a response: the additions of the gateway, and the edits of the route.
//!
//! `rewrite` applies the edits. A *waiting room* gives its visitors tickets and sessions.

use super::record::RequestRecord;
use super::{ratelimit_headers, rewrite};
use crate::http::message::Put;

/// Author of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MadeBy {
    Origin,
    Gateway,
}

/// Puts the fields of `own` and the additions of the gateway, as edited by the route.
pub(super) fn put_all(
    record: &RequestRecord<'_>,
    made_by: MadeBy,
    put: Put<'_>,
    own: impl FnOnce(Put<'_>),
) {
    let put_unedited = |put: Put<'_>| {
        own(put);
        if let Some((name, id)) = record.request_id() {
            put(name.as_bytes(), id.as_bytes());
        }
        let Some(route) = record.route() else { return };
        if let Some(outcome) = record.outcome() {
            ratelimit_headers::write(put, route, record, outcome);
        }
        if made_by == MadeBy::Origin {
            ratelimit_headers::write_shared(put, route, record);
        }
    };
    record.put_with_session(put, |put| match record.route() {
        None => put_unedited(put),
        Some(route) => {
            // `answer_fields` only edit the gateway's own responses.
            let edits = [&route.response_fields, &route.answer_fields];
            let count = if made_by == MadeBy::Origin { 1 } else { 2 };
            rewrite::put_edited(record.info, route, &edits[..count], put, put_unedited);
        }
    });
}

/// Response fields of a new session or ticket.
#[derive(Debug, Default)]
pub(super) struct RoomFields {
    /// Values of `Set-Cookie`.
    pub(super) cookies: Vec<String>,
    /// Name and value of a field for programs, which may keep no cookies.
    pub(super) for_programs: Option<(&'static str, String)>,
}

impl RoomFields {
    /// Puts the cookies and the field for programs.
    pub(super) fn put(&self, put: Put<'_>) {
        for cookie in &self.cookies {
            put(b"Set-Cookie", cookie.as_bytes());
        }
        if let Some((name, value)) = &self.for_programs {
            put(name.as_bytes(), value.as_bytes());
        }
    }
}
