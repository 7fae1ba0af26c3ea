//! The client with most of the requests in flight at an origin, and what helps if it is slow.

use super::super::recent::Recent;
use super::super::words::{seconds, whole};
use crate::origin::Phase;
use crate::status::views::{Holder, OriginSample};

/// A sentence about the client that has at least half of what is in flight, with a blank before it.
pub(super) fn evidence(origin: &OriginSample) -> Option<String> {
    most(origin).map(sentence)
}

/// Such a sentence, and what helps, if most permits waited for a slow client lately, and not for the origin.
///
/// Rejections are counted for some seconds after the client has gone.
pub(super) fn slow_client(recent: &Recent<'_>, origin: &OriginSample) -> Option<(String, String)> {
    let slow = |it| {
        let holder = most(it)?;
        matches!(holder.phase, Phase::Upload | Phase::Reader).then_some(holder)
    };
    let holder = recent.latest_or_before(origin, slow)?;
    let name = &origin.name;
    let remedy = if holder.phase == Phase::Upload {
        format!(
            "Set `request_buffer` for {name}, so that a request leaves once its body is here; a higher `min_body_rate` ends slow uploads. {name} is not at fault."
        )
    } else {
        format!(
            "Set `response_buffer` for {name}, so that its permit is free once it has answered. {name} is not at fault."
        )
    };
    Some((sentence(holder), remedy))
}

fn sentence(holder: &Holder) -> String {
    let Holder {
        client,
        route,
        phase,
        requests,
        of,
        oldest,
    } = holder;
    let why = match phase {
        Phase::Upload => ": it uploads slowly",
        Phase::Reader => ": it reads slowly",
        Phase::Answer | Phase::End => "",
    };
    let (requests, of) = (whole(*requests), whole(*of));
    format!(
        " {requests} of {of} requests in flight are of {client} on {route}, the oldest for {}{why}.",
        seconds(*oldest)
    )
}

/// The one that has at least half of several.
fn most(origin: &OriginSample) -> Option<&Holder> {
    let holder = origin.holder.as_ref()?;
    (holder.of >= 2 && holder.requests * 2 >= holder.of).then_some(holder)
}
