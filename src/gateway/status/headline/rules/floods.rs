//! Many clients of one network before a gate whose keys do not share it.

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{part, whole};
use crate::status::views::OriginSample;

pub(super) fn crowd(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let crowd = origin.gate.as_ref()?.crowd.as_ref()?;
    let (name, network) = (&origin.name, &crowd.network);
    let [addresses, requests, of] =
        [crowd.addresses, crowd.requests, crowd.of].map(|count| whole(count as u64));
    Some(Finding {
        weight: part(crowd.requests as u64, 1),
        title: format!("{addresses} addresses of {network} crowd the gate of {name}"),
        evidence: format!(
            "{requests} of the last {of} requests that waited there or were rejected are theirs. Without `share`, all clients are in one queue."
        ),
        remedy: format!(
            "Name a zone by `$remote_addr` as `share` of {name}, so that each client has its own queue. `new_keys` in that zone bounds how many new addresses get one; `deny` of the route shuts the network out."
        ),
        ..Finding::about(name, Cause::KeyFlood, Severity::Warn)
    })
}
