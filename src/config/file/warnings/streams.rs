//! Limits that refuse what a browser sends at once over HTTP/2.

use limit::{Algorithm, Delay, Limit};

use crate::node::Node;
use crate::{Part, Route, RouteLimit, Settings, Variable, Zone};

/// Warns of a limit that refuses what a browser sends at once over HTTP/2.
pub(super) fn refused_streams(settings: &Settings, node: Node) {
    let server = &settings.server;
    let streams = u32::from(server.max_concurrent_streams.get());
    // Browsers speak HTTP/2 over TLS only.
    if !server.has_tls_address() {
        return;
    }
    let routes = settings.routes.iter().filter(|route| loads_pages(route));
    let limits = routes.flat_map(|route| route.limits.iter().map(move |limit| (route, limit)));
    let refusing = limits.filter_map(|(route, limit)| {
        let zone = &settings.zones[limit.zone];
        let most = at_once(zone, limit).filter(|_| is_of_browsers(zone))?;
        (most < u64::from(streams)).then_some((route, zone, most))
    });
    let refusing: Vec<_> = refusing.collect();
    let says = |(route, zone, most): &(&Route, &Zone, u64)| {
        format!(
            "a browser sends up to {streams} requests at once over HTTP/2, and zone {} on route {} accepts {most} of them and rejects the rest; write",
            zone.name,
            route.name(),
        )
    };
    let mut queues = refusing
        .iter()
        .filter(|(_, zone, _)| zone.algorithm.queues());
    if let Some(node) = node.field("hold_streams").filter(|_| !server.hold_streams)
        && let Some(found) = queues.next()
    {
        node.warn(&format!(
            "{} hold_streams = true, or lower max_concurrent_streams to {}, or raise burst to {}",
            says(found),
            found.2,
            streams - 1,
        ));
    }
    let mut others = refusing
        .iter()
        .filter(|(_, zone, _)| !zone.algorithm.queues());
    if let Some(found) = others.next() {
        let raise = match found.1.algorithm {
            Algorithm::TokenBucket => format!("raise burst to {streams}"),
            _ => "raise the count of its rate".to_owned(),
        };
        let holds = if server.hold_streams {
            ", which holds them"
        } else {
            " and hold_streams = true"
        };
        let place = node.field("max_concurrent_streams").unwrap_or(node);
        place.warn(&format!(
            "{} algorithm = \"leaky_bucket\"{holds}, or lower max_concurrent_streams to {}, or {raise}",
            says(found),
            found.2,
        ));
    }
}

/// Warns of a limit that would hold back what a browser sends at once over HTTP/2, but for
/// `nodelay`, or for want of a queue.
pub(super) fn nothing_waits(settings: &Settings, route: &Route, limit: &RouteLimit, item: Node) {
    let (server, zone) = (&settings.server, &settings.zones[limit.zone]);
    let streams = u32::from(server.max_concurrent_streams.get());
    let holds = server.hold_streams && server.has_tls_address() && zone.algorithm.queues();
    let Limit { burst, delay, .. } = limit.limit;
    let waits = matches!(delay, Delay::Above(delay) if delay < burst);
    let most = at_once(zone, limit).filter(|most| *most < u64::from(streams));
    let (true, false, true, true, Some(most)) =
        (holds, waits, loads_pages(route), is_of_browsers(zone), most)
    else {
        return;
    };
    let (field, remedy) = match delay {
        Delay::Never => ("nodelay", "remove nodelay, so that the rest waits"),
        Delay::Above(0) => ("burst", "raise burst, so that the rest waits"),
        Delay::Above(_) => ("delay", "lower delay, so that the rest waits"),
    };
    item.field(field).unwrap_or(item).warn(&format!(
        "a browser sends up to {streams} requests at once over HTTP/2, and zone {} on route {} accepts {most} of them and rejects the rest, because none waits; {remedy}, or lower max_concurrent_streams to {most}, or raise burst to {}",
        zone.name,
        route.name(),
        streams - 1,
    ));
}

/// Whether a browser may ask for the parts of a page by the route.
fn loads_pages(route: &Route) -> bool {
    !route.dry_run && (route.methods.is_empty() || route.methods.iter().any(|it| it == "GET"))
}

/// How many requests of one key the limit accepts at once, if it has a bound.
fn at_once(zone: &Zone, limit: &RouteLimit) -> Option<u64> {
    if zone.limits_no_rate() {
        return None;
    }
    match zone.algorithm {
        Algorithm::LeakyBucket | Algorithm::TokenBucket => Some(u64::from(limit.limit.burst) + 1),
        Algorithm::FixedWindow | Algorithm::SlidingWindowLog | Algorithm::SlidingWindowCounter => {
            zone.rate.whole_count().map(u64::from)
        }
    }
}

/// Whether all requests of a page that a browser loads may have one key here.
fn is_of_browsers(zone: &Zone) -> bool {
    zone.key.parts().iter().all(|part| match part {
        Part::Text(_) => true,
        Part::Variable(variable) => match variable {
            Variable::RemoteAddr
            | Variable::Host
            | Variable::Scheme
            | Variable::ServerPort
            | Variable::SslClientVerify
            | Variable::SslClientFingerprint
            | Variable::SslClientSubject
            | Variable::SslClientSerial
            | Variable::Cookie(_)
            | Variable::Jwt { .. } => true,
            Variable::Header(name) => name == "user-agent" || name == "cookie",
            Variable::Uri
            | Variable::RequestUri
            | Variable::RequestMethod
            | Variable::Arg(_)
            | Variable::Path(_) => false,
        },
    })
}
