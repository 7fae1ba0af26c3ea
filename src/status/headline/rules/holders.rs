//! Who has most of the requests in flight at an origin, and what helps if that is the client's doing.

use super::super::words::{seconds, whole};
use crate::origin::Phase;
use crate::status::views::{Holder, OriginSample};

/// A sentence about the client that has at least half of what is in flight, with a blank before it.
pub(super) fn evidence(origin: &OriginSample) -> Option<String> {
    let Holder {
        client,
        route,
        phase,
        requests,
        of,
        oldest,
    } = most(origin)?;
    let what = match (phase, requests) {
        (Phase::Upload, 1) => "upload",
        (Phase::Upload, _) => "uploads",
        (Phase::Reader, 1) => "answer that is read slowly",
        (Phase::Reader, _) => "answers that are read slowly",
        (_, 1) => "request",
        _ => "requests",
    };
    let (requests, of) = (whole(*requests), whole(*of));
    Some(format!(
        " {requests} of {of} in flight are {what} of {client} on {route}, the oldest for {}.",
        seconds(*oldest)
    ))
}

/// What helps if most permits wait for a slow client, and not for the origin.
pub(super) fn remedy(origin: &OriginSample) -> Option<String> {
    let name = &origin.name;
    match most(origin)?.phase {
        Phase::Upload => Some(format!(
            "Set `request_buffer` for {name}, so that a request leaves once its body is here, or raise `min_body_rate`. {name} is not at fault."
        )),
        Phase::Reader => Some(format!(
            "Set `response_buffer` for {name}, so that its permit is free once it has answered. {name} is not at fault."
        )),
        Phase::Answer | Phase::End => None,
    }
}

/// The one that has at least half of several.
fn most(origin: &OriginSample) -> Option<&Holder> {
    let holder = origin.holder.as_ref()?;
    (holder.of >= 2 && holder.requests * 2 >= holder.of).then_some(holder)
}
