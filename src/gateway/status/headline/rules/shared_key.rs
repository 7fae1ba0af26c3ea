use super::super::recent::Recent;
use super::super::words::whole;
use crate::status::views::{OnlyKey, ZoneSample};

/// What to say of rejections where all requests share one key.
pub(super) struct SharedKey {
    /// Whether it is surely of all clients.
    pub(super) is_of_all: bool,
    pub(super) evidence: String,
    pub(super) remedy: String,
}

/// Fewer requests than this say nothing of all of them.
const FEW: u64 = 20;

/// `None` if the zone had several keys, or if `reason` has nothing to do with them.
///
/// `zone`: the one for which something was rejected.
pub(super) fn shared_key(
    recent: &Recent<'_>,
    zone: &ZoneSample,
    reason: &str,
) -> Option<SharedKey> {
    let latest = |is_it: fn(&OnlyKey) -> bool| {
        recent.latest_or_before(zone, |it| it.only_key.as_ref().filter(|it| is_it(it)))
    };
    // After a new `key` came into force, rejections are still those of the old one.
    let constant = latest(|it| it.requests >= FEW && it.is_constant);
    let OnlyKey {
        key,
        is_constant,
        requests,
    } = constant.or(latest(|it| it.requests >= FEW))?;
    if !["burst", "max_wait", "in_flight"].contains(&reason) {
        return None;
    }
    let evidence = format!(
        " All requests share one key: {key} ({} in the last minute).",
        whole(*requests)
    );
    let remedy = if *is_constant {
        "The `key` of the zone is the same for all clients, so all share one limit. If each should have its own, use a `key` such as `$remote_addr`; if not, and if the origin can do more, raise `rate`.".to_owned()
    } else {
        format!(
            "If {key} is one client, it asks for more than its limit: give it a plan if it may have more. If it stands for many, such as a proxy, use a `key` that tells them apart, or name the proxy in `server.trusted_proxies`."
        )
    };
    Some(SharedKey {
        is_of_all: *is_constant,
        evidence,
        remedy,
    })
}
