//! What is legal in a file and probably a mistake.
//!
//! Silence is better than a false alarm: a file that does what it says has no warning.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use rustix::fs::{Access, access};

use super::Node;
use crate::config::{
    Listen, ListenAddress, Part, PathPattern, PeerPattern, Peers, Route, RouteLimit, Server,
    Settings, Variable, Zone, check_state_file,
};
use crate::limit::{Algorithm, Delay, Limit, Rate, show_duration};

/// Where the text has what may be warned of.
pub(super) struct Places<'r> {
    pub(super) server: Option<Node<'r>>,
    /// In the order of the settings, as are the routes.
    pub(super) zones: Vec<Node<'r>>,
    pub(super) routes: Vec<Node<'r>>,
}

/// Notes the warnings of valid settings at their places.
pub(super) fn find(settings: &Settings, places: &Places) {
    if let Some(node) = places.server {
        server(&settings.server, node);
    }
    for (index, (zone, node)) in settings.zones.iter().zip(&places.zones).enumerate() {
        key(zone, *node);
        exempt(zone, *node);
        lease(settings, index, *node);
        plan_bursts(settings, index, *node);
        if !is_used(settings, index) {
            node.warn("no route and no origin uses this zone; name it in the limits of a route, or remove it");
        }
    }
    if let Some(node) = places.server {
        refused_streams(settings, node);
    }
    for (route, node) in settings.routes.iter().zip(&places.routes) {
        wildcard(route, *node);
        let items = node.field("limits").and_then(|limits| limits.items());
        for (limit, item) in route.limits.iter().zip(items.iter().flatten()) {
            unused_burst(settings, limit, *item);
            nothing_waits(settings, route, limit, *item);
            never_full(settings, route, limit, *item);
        }
    }
}

/// Warns of a `*` in a path, which matches only itself.
fn wildcard(route: &Route, node: Node) {
    let (path, begins) = match &route.path {
        PathPattern::Prefix(path) => (path, ""),
        PathPattern::Exact(path) => (path, "= "),
        PathPattern::Regex(_) => return,
    };
    let (Some(node), Some((before, behind))) = (node.field("path"), path.split_once('*')) else {
        return;
    };
    let prefix = format!("\"{before}\", which takes every path that begins with it");
    let remedy = if behind.trim_matches('*').is_empty() {
        prefix
    } else {
        let parts: Vec<_> = path.split('*').map(regex_syntax::escape).collect();
        // In quotes that take backslashes as they are.
        format!("'regex:^{}'", parts.join("[^/]*"))
    };
    node.warn(&format!(
        "* is no wildcard in \"{begins}{path}\", so only a path that has a * matches; write {remedy}"
    ));
}

fn server(server: &Server, node: Node) {
    let is_local = |listen: &Listen| match &listen.address {
        ListenAddress::Tcp(address) => is_loopback(address),
        ListenAddress::Unix { .. } => true,
    };
    if !server.listen.iter().all(is_local) {
        every_peer(node.field("trusted_proxies"), &server.trusted_proxies);
        every_peer(node.field("proxy_protocol"), &server.proxy_protocol);
    }
    if let Some(tls) = node.field("tls").filter(|_| !server.has_tls_address()) {
        tls.warn("no address of listen has TLS, so nothing uses the certificates; write tls = true for one, or remove this table");
    }
    if let (Some(state), Some(node)) = (&server.state, node.field("state")) {
        state_file(state, node);
    }
    if let (Some(admin), Some(node)) = (server.admin, node.field("admin"))
        && !is_loopback(&admin)
    {
        node.warn(&format!(
            "{admin} is reachable from other hosts without TLS, so the token can be read on its way; use 127.0.0.1:{} behind a tunnel or a TLS proxy, unless the network is trusted",
            admin.port()
        ));
    }
}

/// Warns of a state file that cannot be written.
fn state_file(state: &Path, node: Node) {
    let file = match check_state_file(state) {
        Ok(file) => file,
        Err(error) => {
            node.warn(&format!(
                "the state cannot be written to {}: {error}; name another file, or a restart forgets all levels",
                state.display()
            ));
            return;
        }
    };
    let folder = file.parent().unwrap_or(&file);
    if let Err(error) = access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        node.warn(&format!(
            "no file can be written in {}: {error}; name one in a folder that this user can write, or a restart forgets all levels",
            folder.display()
        ));
    }
}

/// Warns of a list that trusts whoever connects.
fn every_peer(node: Option<Node>, peers: &Peers) {
    let networks = peers.patterns().iter().map(|pattern| match pattern {
        PeerPattern::Network(network) => Some(*network),
        PeerPattern::Unix => None,
    });
    every_address(
        node,
        &networks.collect::<Vec<_>>(),
        &Everyone {
            one: "trusts every peer",
            all: "trust every peer",
            so: "so each client chooses the address that it is known by; name the proxies only",
        },
    );
}

/// What a list that has every address means.
struct Everyone {
    one: &'static str,
    all: &'static str,
    so: &'static str,
}

/// Warns of a network with every address of its family, and of several that are as much together.
fn every_address(node: Option<Node>, networks: &[Option<IpNet>], means: &Everyone) {
    let Some(node) = node else {
        return;
    };
    let Everyone { one, all, so } = means;
    let mut has_one = false;
    for (item, network) in node.items().iter().flatten().zip(networks) {
        if network.is_some_and(|network| network.prefix_len() == 0) {
            item.warn(&format!("{} {one}, {so}", item.found()));
            has_one = true;
        }
    }
    let together = IpNet::aggregate(&networks.iter().flatten().copied().collect());
    if !has_one && let Some(whole) = together.iter().find(|it| it.prefix_len() == 0) {
        node.warn(&format!(
            "its networks together are {whole} and {all}, {so}"
        ));
    }
}

fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Warns of a key that was meant to have another variable, or any.
fn key(zone: &Zone, node: Node) {
    let Some(node) = node.field("key") else {
        return;
    };
    let parts = zone.key.parts();
    if let [Part::Text(text)] = parts
        && let Some(variable) = meant(text)
    {
        node.warn(&format!(
            "{} has no variable, so all requests share one bucket; write \"${variable}\", or another text if that is what you want",
            node.found()
        ));
    }
    for part in parts {
        if let Part::Variable(variable @ Variable::Header(name)) = part
            && (name.starts_with("x-forwarded-") || name == "x-real-ip" || name == "forwarded")
        {
            node.warn(&format!(
                "${variable} is what each client writes, so it chooses its own bucket; write \"$remote_addr\", and the proxies in trusted_proxies"
            ));
        }
    }
    let written = node.value.as_str().unwrap_or_default();
    for pair in parts.windows(2) {
        if let [Part::Variable(variable), Part::Text(text)] = pair
            && let Some(longer) = continued(variable, text)
            // Braces say that the variable ends there.
            && !written.contains('{')
        {
            node.warn(&format!(
                "the variable ends before \"{text}\": - is written _ in the name of a variable; write \"${longer}\", or \"${{{variable}}}{text}\" if the text is meant",
            ));
        }
    }
}

/// The variable that a text without one was meant to be.
fn meant(text: &str) -> Option<Variable> {
    let name = text.trim_matches(['{', '}', '%', ' ', '<', '>']);
    let name = if name == "binary_remote_addr" {
        "remote_addr"
    } else {
        name
    };
    name.replace('-', "_").parse().ok()
}

/// The name that a header's variable was meant to have, if a text continues it.
fn continued(variable: &Variable, text: &str) -> Option<Variable> {
    let rest = text.strip_prefix('-')?;
    let more = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let more = &rest[..more.unwrap_or(rest.len())];
    if !matches!(variable, Variable::Header(_))
        || !more.starts_with(|c: char| c.is_ascii_alphanumeric())
    {
        return None;
    }
    format!("{variable}_{}", more.replace('-', "_"))
        .parse()
        .ok()
}

fn exempt(zone: &Zone, node: Node) {
    let networks: Vec<_> = zone.exempt.iter().copied().map(Some).collect();
    every_address(
        node.field("exempt"),
        &networks,
        &Everyone {
            one: "is every address of its family",
            all: "are every address of its family",
            so: "so the zone never limits these clients; name fewer",
        },
    );
}

/// Shortest lease in which a gateway decides enough requests to matter.
///
/// It is several round trips to a store that is near, and as often as ended leases are looked for.
const SHORTEST_LEASE: Duration = Duration::from_millis(1);

/// Warns of a lease that takes no places ahead.
fn lease(settings: &Settings, index: usize, node: Node) {
    let zone = &settings.zones[index];
    let Some(node) = node.field("lease").filter(|_| !zone.lease.is_zero()) else {
        return;
    };
    if zone.lease < SHORTEST_LEASE {
        node.warn(&format!(
            "a lease of {} is over before requests have come that it could decide; write lease = \"20ms\", or remove lease",
            show_duration(zone.lease)
        ));
        return;
    }
    let routes = settings.routes.iter();
    let limits = routes.flat_map(|route| &route.limits);
    let mut limits = limits.filter(|limit| limit.zone == index).peekable();
    // A token bucket's burst in the file includes the request itself.
    let (least, without) = if zone.algorithm.queues() {
        (0, "without burst")
    } else {
        (1, "with a burst of 1")
    };
    let has_room = limits.peek().is_none()
        || limits.any(|limit| limit.limit.burst > 0)
        || zone.plans.iter().any(|plan| plan.burst > Some(least));
    // A window has room for all that it counts.
    if !zone.algorithm.has_windows() && !has_room {
        node.warn(&format!("{without} there are no places to take ahead, so a lease only repeats refusals; raise the burst of a limit of this zone, at least to what its rate allows in the time of the lease, or remove lease"));
    }
}

fn is_used(settings: &Settings, zone: usize) -> bool {
    let mut limits = settings.routes.iter().flat_map(|route| &route.limits);
    let mut origins = settings.origins.iter();
    limits.any(|limit| limit.zone == zone) || origins.any(|origin| origin.share == Some(zone))
}

/// The requests of a limit that wait for their time in a full queue, if any wait in its zone.
fn queue(settings: &Settings, limit: &RouteLimit) -> Option<u32> {
    let zone = &settings.zones[limit.zone];
    queued(&limit.limit).filter(|_| zone.algorithm.queues())
}

/// The rates of the keys that have the burst of the limit itself.
fn rates(zone: &Zone) -> impl Iterator<Item = Rate> {
    let plans = zone.plans.iter().filter(|plan| plan.burst.is_none());
    std::iter::once(zone.rate).chain(plans.filter_map(|plan| plan.rate))
}

/// Warns of a burst of which a part would wait longer than `max_wait`, at each rate of the zone.
fn unused_burst(settings: &Settings, limit: &RouteLimit, item: Node) {
    let zone = &settings.zones[limit.zone];
    let (Some(queue), Some(max_wait)) = (queue(settings, limit), limit.limit.max_wait) else {
        return;
    };
    // Requests that wait for a place stay while the bucket leaks.
    if limit.limit.in_flight.is_some() {
        return;
    }
    let in_time = |rate: Rate| {
        if rate.is_unlimited() {
            u64::MAX
        } else {
            rate.count_in(max_wait)
        }
    };
    let most = rates(zone).map(in_time).max().unwrap_or(u64::MAX);
    if u64::from(queue) > most
        && let Some(node) = item.field("burst")
    {
        let burst = limit.limit.burst;
        let usable = u64::from(burst - queue) + most;
        node.warn(&format!(
            "of burst {burst} at most {usable} can be used: further requests would wait longer than max_wait; lower burst to {usable}, or raise max_wait or the rate of zone {}",
            zone.name
        ));
    }
}

/// Warns of bursts of plans that no limit of the zone can use, in whichever file it is.
fn plan_bursts(settings: &Settings, index: usize, node: Node) {
    let zone = &settings.zones[index];
    let of_route = |route: &'_ Route| {
        let limits = route.limits.iter().filter(|limit| limit.zone == index);
        let limits = limits.map(|limit| (limit.limit, route.cost.max().get()));
        limits.collect::<Vec<_>>()
    };
    let limits: Vec<(Limit, u32)> = settings.routes.iter().flat_map(of_route).collect();
    let entries = node.field("plans").and_then(|plans| plans.entries());
    if limits.is_empty() || !zone.algorithm.queues() {
        return;
    }
    let most = settings.server.max_connections.get();
    for (plan, entry) in zone.plans.iter().zip(entries.iter().flatten()) {
        let (Some(burst), Some(field)) = (plan.burst, entry.field("burst")) else {
            continue;
        };
        let rate = plan.rate.unwrap_or(zone.rate);
        let own = || {
            limits
                .iter()
                .map(|(limit, cost)| (plan.apply(*limit, zone.algorithm), *cost))
        };
        let usable = own().map(|(limit, _)| usable(&limit, rate)).max();
        if let Some(usable) = usable.filter(|usable| *usable < u64::from(burst)) {
            field.warn(&format!(
                "of burst {burst} at most {usable} can be used: in each limit of zone {} further requests would wait longer than max_wait; lower burst to {usable}, or raise max_wait or the rate",
                zone.name
            ));
        }
        let is_never_full = |(limit, cost): (Limit, u32)| {
            let queue = queued(&limit).map(|queue| queue / cost);
            let is_above = |queue| usize::try_from(queue).is_ok_and(|queue| queue >= most);
            limit.max_wait.is_none() && queue.is_some_and(is_above)
        };
        if !settings.server.has_tls_address() && own().all(is_never_full) {
            field.warn(&format!(
                "{burst} is not below max_connections, which is {most}, so in each limit of zone {} the queue is never full and the limit never rejects; lower it",
                zone.name
            ));
        }
    }
}

/// How much of a burst can be used in time.
fn usable(limit: &Limit, rate: Rate) -> u64 {
    let (Some(queue), Some(max_wait)) = (queued(limit), limit.max_wait) else {
        return u64::MAX;
    };
    // Requests that wait for a place stay while the bucket leaks.
    if limit.in_flight.is_some() || rate.is_unlimited() {
        return u64::MAX;
    }
    let most = rate.count_in(max_wait);
    if u64::from(queue) <= most {
        return u64::MAX;
    }
    u64::from(limit.burst - queue) + most
}

/// The requests of a limit that wait for their time in a full queue, if any wait.
fn queued(limit: &Limit) -> Option<u32> {
    match limit.delay {
        Delay::Above(delay) => Some(limit.burst.saturating_sub(delay)),
        Delay::Never => None,
    }
}

/// Warns of a limit that refuses what a browser sends at once over HTTP/2.
fn refused_streams(settings: &Settings, node: Node) {
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
fn nothing_waits(settings: &Settings, route: &Route, limit: &RouteLimit, item: Node) {
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
            | Variable::Cookie(_) => true,
            Variable::Header(name) => name == "user-agent" || name == "cookie",
            Variable::Uri | Variable::RequestUri | Variable::RequestMethod | Variable::Arg(_) => {
                false
            }
        },
    })
}

/// Warns of a queue, or of places, that the connections of all clients together never fill.
fn never_full(settings: &Settings, route: &Route, limit: &RouteLimit, item: Node) {
    // Over TLS, HTTP/2 has many requests on a connection.
    if settings.server.has_tls_address() {
        return;
    }
    let most = settings.server.max_connections.get();
    let is_above = |count: u32| usize::try_from(count).is_ok_and(|count| count >= most);
    let never = |field: &'static str, times: &str, what: &str| {
        if let Some(node) = item.field(field) {
            node.warn(&format!(
                "{} is not below {times}max_connections, which is {most}, so {what}; lower it",
                node.found()
            ));
        }
    };
    // A request that costs 20 fills the queue as 20 others do.
    let cost = route.cost.max().get();
    let requests = queue(settings, limit).map(|queue| queue / cost);
    if limit.limit.max_wait.is_none() && requests.is_some_and(is_above) {
        let times = match cost {
            1 => String::new(),
            cost => format!("{cost} times "),
        };
        never(
            "burst",
            &times,
            "the queue is never full and the limit never rejects",
        );
    }
    if limit.limit.in_flight.is_some_and(|it| is_above(it.get())) {
        never("in_flight", "", "as many requests never run at once");
    }
}
