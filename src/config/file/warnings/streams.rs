//! Warnings about limits that reject requests which a browser sends at once over HTTP/2.
//!
//! A browser loads all parts of a page at once, as streams of one connection. A limit should let
//! those above `burst` wait instead of rejecting them.

use limit::Delay;

use crate::node::Node;
use crate::{Route, RouteLimit, Server, Settings, Variable, Zone};

/// Warns of a limit that rejects a part of the requests that a browser sends at once over HTTP/2.
///
/// `item`: the limit in the file.
pub(super) fn check(settings: &Settings, route: &Route, limit: &RouteLimit, item: Node) {
    let (server, zone) = (&settings.server, &settings.zones[limit.zone]);
    let streams = server.max_concurrent_streams.get();
    // Browsers use HTTP/2 over TLS only.
    let is_for_browsers =
        server.has_tls_address() && may_load_pages(route) && has_one_key_per_page(zone);
    if let Some(accepted) = accepted_at_once(zone, limit)
        && let Some((field, remedy)) = remedy(server, zone, limit)
        && is_for_browsers
        && accepted < u64::from(streams)
    {
        item.field(field).unwrap_or(item).warn(&format!(
            "a browser sends up to {streams} requests at once over HTTP/2, and zone {} on route {} accepts {accepted} of them and rejects the rest; {remedy}, or lower max_concurrent_streams to {accepted}",
            zone.name,
            route.name(),
        ));
    }
}

/// Returns the field to change, and the remedy: after it, requests above `burst` wait.
///
/// `None`: such requests wait already.
fn remedy(
    server: &Server,
    zone: &Zone,
    limit: &RouteLimit,
) -> Option<(&'static str, &'static str)> {
    let burst = limit.limit.burst;
    Some(match limit.limit.delay {
        _ if !zone.algorithm.queues() && server.hold_streams => (
            "zone",
            "write algorithm = \"leaky_bucket\" in the zone, which holds them",
        ),
        _ if !zone.algorithm.queues() => (
            "zone",
            "write algorithm = \"leaky_bucket\" in the zone, and hold_streams = true in [server]",
        ),
        _ if !server.hold_streams => ("burst", "write hold_streams = true in [server]"),
        Delay::Never => ("nodelay", "remove nodelay, so that the rest waits"),
        Delay::Above(_) if burst == 0 => ("burst", "raise burst, so that the rest waits"),
        Delay::Above(delay) if delay >= burst => ("delay", "lower delay, so that the rest waits"),
        Delay::Above(_) => return None,
    })
}

/// Returns whether a browser may load the parts of a page through the route, and a limit applies.
fn may_load_pages(route: &Route) -> bool {
    let has_get = route.methods.is_empty() || route.methods.iter().any(|method| method == "GET");
    !route.dry_run && has_get
}

/// Returns how many requests of one key the limit accepts at once; `None`: any number.
fn accepted_at_once(zone: &Zone, limit: &RouteLimit) -> Option<u64> {
    if zone.limits_no_rate() {
        return None;
    }
    if zone.algorithm.has_windows() {
        return zone.rate.whole_count().map(u64::from);
    }
    Some(u64::from(limit.limit.burst) + 1)
}

/// Returns whether all requests that a browser sends for one page may have the same key.
fn has_one_key_per_page(zone: &Zone) -> bool {
    zone.key.variables().all(|variable| match variable {
        Variable::Header(name) => name == "user-agent" || name == "cookie",
        Variable::Uri
        | Variable::RequestUri
        | Variable::RequestMethod
        | Variable::Arg(_)
        | Variable::Path(_) => false,
        // The other variables have one value for all requests of a browser to a site.
        _ => true,
    })
}
