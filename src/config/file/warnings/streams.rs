//! Warnings about limits that reject requests a browser sends at once over HTTP/2.

use limit::Delay;

use crate::node::Node;
use crate::{Route, RouteLimit, Server, Settings, Variable, Zone};

/// Warns of a limit that rejects a part of the requests a browser sends at once over HTTP/2.
pub(super) fn refused_streams(settings: &Settings, route: &Route, limit: &RouteLimit, item: Node) {
    let (server, zone) = (&settings.server, &settings.zones[limit.zone]);
    let streams = server.max_concurrent_streams.get();
    // Browsers use HTTP/2 over TLS only.
    let is_of_page = server.has_tls_address() && loads_pages(route) && is_of_browsers(zone);
    let most = at_once(zone, limit).filter(|most| is_of_page && *most < u64::from(streams));
    if let (Some(most), Some((field, remedy))) = (most, remedy(server, zone, limit)) {
        item.field(field).unwrap_or(item).warn(&format!(
            "a browser sends up to {streams} requests at once over HTTP/2, and zone {} on route {} accepts {most} of them and rejects the rest; {remedy}, or lower max_concurrent_streams to {most}",
            zone.name,
            route.name(),
        ));
    }
}

/// Returns the field to change and the remedy, so that requests above `burst` wait.
///
/// `None`: they wait already.
fn remedy(
    server: &Server,
    zone: &Zone,
    limit: &RouteLimit,
) -> Option<(&'static str, &'static str)> {
    let burst = limit.limit.burst;
    Some(match limit.limit.delay {
        _ if !zone.algorithm.queues() => (
            "zone",
            if server.hold_streams {
                "write algorithm = \"leaky_bucket\" in the zone, which holds them"
            } else {
                "write algorithm = \"leaky_bucket\" in the zone, and hold_streams = true in [server]"
            },
        ),
        _ if !server.hold_streams => ("burst", "write hold_streams = true in [server]"),
        Delay::Never => ("nodelay", "remove nodelay, so that the rest waits"),
        Delay::Above(_) if burst == 0 => ("burst", "raise burst, so that the rest waits"),
        Delay::Above(delay) if delay >= burst => ("delay", "lower delay, so that the rest waits"),
        Delay::Above(_) => return None,
    })
}

/// Returns whether a browser may load the parts of a page through the route.
fn loads_pages(route: &Route) -> bool {
    !route.dry_run && (route.methods.is_empty() || route.methods.iter().any(|it| it == "GET"))
}

/// Returns how many requests of one key the limit accepts at once, if it has a bound.
fn at_once(zone: &Zone, limit: &RouteLimit) -> Option<u64> {
    if zone.limits_no_rate() {
        return None;
    }
    if zone.algorithm.has_windows() {
        return zone.rate.whole_count().map(u64::from);
    }
    Some(u64::from(limit.limit.burst) + 1)
}

/// Returns whether all requests of a page that a browser loads may have the same key.
fn is_of_browsers(zone: &Zone) -> bool {
    zone.key.variables().all(|variable| match variable {
        Variable::Header(name) => name == "user-agent" || name == "cookie",
        Variable::Uri
        | Variable::RequestUri
        | Variable::RequestMethod
        | Variable::Arg(_)
        | Variable::Path(_) => false,
        // The others have one value for all requests of a browser to a site.
        _ => true,
    })
}
