//! The client with most of the requests in flight at an origin, and what helps if it is slow.

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
    let why = match phase {
        Phase::Upload => ": it uploads slowly",
        Phase::Reader => ": it reads slowly",
        Phase::Answer | Phase::End => "",
    };
    let (requests, of) = (whole(*requests), whole(*of));
    Some(format!(
        " {requests} of {of} requests in flight are of {client} on {route}, the oldest for {}{why}.",
        seconds(*oldest)
    ))
}

/// What helps if most permits wait for a slow client, and not for the origin.
pub(super) fn remedy(origin: &OriginSample) -> Option<String> {
    let name = &origin.name;
    match most(origin)?.phase {
        Phase::Upload => Some(format!(
            "Set `request_buffer` for {name}, so that a request leaves once its body is here; a higher `min_body_rate` ends slow uploads. {name} is not at fault."
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
