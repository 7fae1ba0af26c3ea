use super::super::finding::{Cause, Finding, Severity};
use super::super::words::{part, whole};
use crate::admin::views::Sample;

pub(super) fn connections_full(now: &Sample) -> Option<Finding> {
    let it = now.connections;
    if !it.is_full {
        return None;
    }
    let waiting = it.waiting;
    let how_many = waiting.map_or(String::new(), |count| format!(" ({} now)", whole(count)));
    Some(Finding {
        cause: Cause::ConnectionsFull,
        severity: Severity::Bad,
        weight: part(waiting.unwrap_or_default(), 1),
        about: None,
        title: format!(
            "{} of {} connections are in use; new clients wait in the kernel{how_many}",
            whole(it.open),
            whole(it.max)
        ),
        evidence: "A client that waits there gets no answer, and no other figure counts it."
            .to_owned(),
        remedy: "Raise `server.max_connections`, or lower `server.keep_alive` so that idle clients leave sooner; see Runbooks, DripConnectionsNearMax."
            .to_owned(),
    })
}
