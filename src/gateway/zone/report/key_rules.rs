//! Rules for keys that do not stand for one client each: no key, one for all, or a proxy's address.
//!
//! A *rule* of the headline returns a finding if it applies to a sample.

use super::sample::{OnlyKey, RecentRequests, ZoneSample};
use crate::status::headline::finding::{Cause, Finding, Severity};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{count, listed, pace, part, percent, seconds, waiting, whole};
use crate::status::plain::Plain;

/// Minimum number of requests from which a conclusion is drawn.
const MIN_REQUESTS: u64 = 20;
/// Minimum share of requests without a key for a finding: the limit then limits almost nobody.
const NEARLY_ALL: f64 = 0.95;
/// Maximum number of routes in a title.
const MAX_NAMED_ROUTES: usize = 3;

/// Rule: requests without a key bypass a limit.
pub(crate) fn no_key(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let name = &zone.name;
    let no_key = recent.total(zone, |it| it.no_key);
    let mut requests = RecentRequests {
        no_key,
        all: no_key + recent.came(zone),
        span: recent.seconds(),
    };
    // If few requests come, the last seconds say nothing: look at the last hundred requests.
    if requests.all < MIN_REQUESTS {
        requests = zone.lately;
    }
    let RecentRequests { no_key, all, span } = requests;
    let share = part(no_key, all);
    if no_key < MIN_REQUESTS || share < NEARLY_ALL {
        return None;
    }
    let keyless = recent.keyless(zone)?;
    let (key, routes) = (&keyless.key, on_routes(&keyless.routes));
    let a_second = pace(part(no_key, 1) / span.max(1.0));
    let title = if no_key == all {
        format!("All requests{routes} ({a_second}) have no {key}: {name} limits none of them")
    } else {
        let share = percent(share);
        format!(
            "{share} of the requests{routes} ({a_second}) have no {key}: {name} does not limit them"
        )
    };
    Some(Finding {
        weight: part(no_key, 1),
        title,
        evidence: format!(
            "{} of {} in the last {} had an empty key, and an empty key is not limited.",
            whole(no_key),
            count(all, "request"),
            seconds(span)
        ),
        remedy: format!(
            "Correct the `key` of {name}, or let clients send what it is made of. If they may leave it out, give the route a second limit, by `$remote_addr`."
        ),
        ..Finding::about(name, Cause::NoKey, Severity::Warn)
    })
}

/// Formats the names of routes, with a blank before them: ` on /a and /b`. Empty without routes.
fn on_routes(routes: &[Plain]) -> String {
    let mut names: Vec<_> = routes
        .iter()
        .take(MAX_NAMED_ROUTES)
        .map(Plain::to_string)
        .collect();
    if routes.len() > MAX_NAMED_ROUTES {
        names.push("others".to_owned());
    }
    if names.is_empty() {
        return String::new();
    }
    format!(" on {}", listed(&names))
}

/// Texts for rejections where all requests share one key.
pub(crate) struct SharedKey {
    /// Whether the key certainly covers all clients.
    pub(crate) is_of_all: bool,
    pub(crate) evidence: String,
    pub(crate) remedy: String,
}

/// Finds the shared key of a zone's requests.
///
/// `None` if the zone had several keys, or if `reason` does not depend on them. `zone`: the zone
/// that rejected.
pub(crate) fn shared_key(
    recent: &Recent<'_>,
    zone: &ZoneSample,
    reason: &str,
) -> Option<SharedKey> {
    let latest = |matches: fn(&OnlyKey) -> bool| {
        recent.latest_or_before(zone, |it| it.only_key.as_ref().filter(|key| matches(key)))
    };
    // A constant key counts even if a later sample has another: right after a new `key` came into
    // force, the rejections are still due to the old one.
    let constant = latest(|it| it.requests >= MIN_REQUESTS && it.is_constant);
    let only_key = constant.or(latest(|it| it.requests >= MIN_REQUESTS))?;
    let (key, is_constant) = (&only_key.key, only_key.is_constant);
    if !["burst", "max_wait", "in_flight"].contains(&reason) {
        return None;
    }
    let evidence = format!(
        " All requests share one key: {key} ({} in the last minute).",
        whole(only_key.requests)
    );
    let remedy = if is_constant {
        "The `key` of the zone is the same for all clients, so all share one limit. If each should have its own, use a `key` such as `$remote_addr`; if not, and if the origin can do more, raise `rate`.".to_owned()
    } else {
        format!(
            "If {key} is one client, it asks for more than its limit: give it a plan if it may have more. If it stands for many, such as a proxy, use a `key` that tells them apart, or name the proxy in `server.trusted_proxies`."
        )
    };
    Some(SharedKey {
        is_of_all: is_constant,
        evidence,
        remedy,
    })
}

/// Rule: a peer sends requests of several clients, and a limit counts them as one.
pub(crate) fn untrusted_proxy(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let name = &zone.name;
    let rejected = recent.total(zone, |it| it.rejected);
    // While there are rejections, an earlier sample may name the peer: it is still their cause
    // after its load has ended, or after it has become trusted.
    let peer = match rejected {
        0 => zone.untrusted_proxy.as_ref()?,
        _ => recent.latest_or_before(zone, |it| it.untrusted_proxy.as_ref())?,
    };
    let came = recent.came(zone);
    let limited = if rejected > 0 {
        let rejected = recent.share_of(rejected, came, "request");
        format!("{rejected} were rejected.")
    } else {
        format!("{}.", waiting(zone.depth))
    };
    let severity = Severity::bad_if(rejected * 2 >= came.max(1));
    Some(Finding {
        weight: part(rejected, 1),
        title: format!("{name} counts all clients behind {peer} as one"),
        evidence: format!(
            "{peer} names different clients in X-Forwarded-For, and is not in `trusted_proxies`. {limited}"
        ),
        remedy: format!(
            "If {peer} is a proxy of your own, add it to `server.trusted_proxies`; then each of its clients has a limit of its own. If it is a client, leave it out: it invents them."
        ),
        count: zone.rejected,
        ..Finding::about(name, Cause::UntrustedProxy, severity)
    })
}
