//! Rules of the headline for exhausted limits: connections, descriptors, local ports, log space.
//!
//! A rule reads the samples of the last seconds, and returns its finding: cause, evidence and
//! remedy, in words for the operator. The headline is the most urgent finding.

use std::net::IpAddr;

use crate::observe::connections::IdleConnections;
use crate::status::headline::finding::{Cause, Finding, Severity};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{count, is, listed, part, seconds, whole};
use crate::status::sample::Sample;

/// Finds exhausted limits of client connections and of connections to origins.
pub(crate) fn connections_full(recent: &Recent<'_>, now: &Sample) -> Vec<Finding> {
    let sum = |count: fn(&Sample) -> u64| recent.of_process(count);
    let descriptors = find_shortage(
        recent,
        "file descriptor",
        sum(|it| it.descriptors.waited),
        sum(|it| it.descriptors.in_vain),
        sum(|it| it.descriptors.clients),
        "Raise the limit of the process (`LimitNOFILE` in systemd, `ulimit -n`), or lower `server.max_connections`.",
    );
    let ports = find_shortage(
        recent,
        "local port",
        sum(|it| it.local_ports.waited),
        sum(|it| it.local_ports.in_vain),
        // Accepting a client needs no local port.
        0,
        "Widen `net.ipv4.ip_local_port_range`, or raise `keep_alive` of the origin so that connections are used again.",
    );
    let found = [find_full(now), descriptors, ports];
    found.into_iter().flatten().collect()
}

/// Reports that all client connections are in use, and new clients wait.
fn find_full(now: &Sample) -> Option<Finding> {
    let connections = now.connections;
    if !connections.is_full {
        return None;
    }
    let waiting = connections.waiting;
    let (open, max) = (whole(connections.open), whole(connections.max));
    // The lower of the two limits is the one to raise.
    let (in_use, raise) = if connections.few_descriptors {
        let allowed = count(connections.max, "client connection");
        (
            format!("The limit of file descriptors allows only {allowed}"),
            "Raise the limit of file descriptors (`LimitNOFILE` in systemd, `ulimit -n`)",
        )
    } else {
        (
            format!("{open} of {max} connections are in use"),
            "Raise `server.max_connections`",
        )
    };
    let waiting_now = waiting.map_or(String::new(), |count| format!(" ({} now)", whole(count)));
    let idle_clients = connections.idle;
    let idle_clients = idle_clients.map(|idle| describe_idle(idle, connections.open));
    // Less than a quarter of the connections is idle.
    let has_few_idle = (connections.idle).is_some_and(|idle| idle.count * 4 < connections.open);
    let other_remedy = if has_few_idle {
        find_out_why_slow(now)
    } else {
        "lower `server.keep_alive` and `server.header_timeout` so that idle clients leave sooner"
            .to_owned()
    };
    Some(Finding {
        weight: part(waiting.unwrap_or_default(), 1),
        title: format!("{in_use}; new clients wait in the kernel{waiting_now}"),
        evidence: format!(
            "{}A client that waits there gets no answer, and no other figure counts it.",
            idle_clients.unwrap_or_default()
        ),
        remedy: format!("{raise}, or {other_remedy}; see Runbooks, DripConnectionsNearMax."),
        ..Finding::new(Cause::ConnectionsFull, Severity::Bad)
    })
}

/// Describes the number of idle connections, and the client with most of them.
///
/// If few connections are idle, names the client with most of all connections instead. A blank
/// follows each sentence.
fn describe_idle(idle: IdleConnections, open: u64) -> String {
    // Returns a client with at least a quarter of `all` connections, and its number as text.
    let if_large = |client: Option<(IpAddr, u64)>, all: u64| {
        let client = client.filter(|(_, count)| *count > 1 && *count * 4 >= all);
        client.map(|(address, count)| (address, whole(count)))
    };
    let count = idle.count;
    let are_idle = format!("{} {} idle", whole(count), is(count));
    if count * 4 >= open
        && let Some((client, its_idle)) = if_large(idle.most, count)
    {
        return format!("{are_idle}, {its_idle} of them of {client}. ");
    }
    let largest = if_large(idle.most_of_all, open);
    let largest = largest.map_or(String::new(), |(client, connections)| {
        format!("{connections} connections are from {client}. ")
    });
    match count {
        0 => format!("None is idle: all have requests that are not answered yet. {largest}"),
        _ => format!("{are_idle}. {largest}"),
    }
}

/// Returns the remedy if connections are in use because responses take long.
fn find_out_why_slow(now: &Sample) -> String {
    let Some(origin) = now.silent() else {
        return "find out why answers take so long".to_owned();
    };
    let (name, silence) = (&origin.name, seconds(origin.silence()));
    format!("find out why origin {name} has answered nothing for {silence}")
}

/// Reports that no `resource` is free.
///
/// `waited`: number of requests that had to wait for one for their connection to an origin.
/// `in_vain`: number of requests that got none in time. `clients`: number of failed attempts to
/// accept a client.
fn find_shortage(
    recent: &Recent<'_>,
    resource: &str,
    waited: u64,
    in_vain: u64,
    clients: u64,
    remedy: &str,
) -> Option<Finding> {
    let facts = [
        (waited > 0).then(|| format!("{} had to wait for one", count(waited, "request"))),
        (in_vain > 0).then(|| format!("{} got 503", count(in_vain, "request"))),
        (clients > 0).then(|| format!("accepting a client failed {}", count(clients, "time"))),
    ];
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    if facts.is_empty() {
        return None;
    }
    let (whom, kernel) = match (waited + in_vain, clients) {
        (0, _) => ("new clients", " New clients wait in the kernel."),
        (_, 0) => ("connections to origins", ""),
        _ => ("connections to origins", " New clients wait in the kernel."),
    };
    let span = recent.seconds();
    Some(Finding {
        weight: part(waited + in_vain, 1),
        title: format!("The gateway has no {resource} for {whom}"),
        evidence: format!("In the last {span:.0} s, {}.{kernel}", listed(&facts)),
        remedy: format!("{remedy} The origin is not at fault."),
        ..Finding::new(Cause::ConnectionsFull, Severity::Bad)
    })
}

/// Rule: lines of the access log are lost.
pub(crate) fn log_lost(recent: &Recent<'_>, now: &Sample) -> Option<Finding> {
    let lost = recent.of_process(|it| it.log.lost);
    if lost == 0 {
        return None;
    }
    let error = now.log.error.as_ref();
    let (title, why, remedy) = match error {
        Some(error) => (
            "The access log cannot be written, and its lines are lost",
            error.as_str(),
            "Make room on its disk, or raise the limit on the size of files (`LimitFSIZE` in systemd, `ulimit -f`). Requests are served all the same.",
        ),
        None => (
            "The access log loses lines",
            "writing is too slow, or failed a moment ago",
            "Give the log a faster disk, or let the program at its pipe read faster. Requests are served all the same.",
        ),
    };
    Some(Finding {
        weight: part(lost, 1),
        title: title.to_owned(),
        evidence: format!(
            "{} lost in the last {:.0} s: {why}.",
            count(lost, "line"),
            recent.seconds()
        ),
        remedy: remedy.to_owned(),
        ..Finding::new(Cause::LogLost, Severity::Warn)
    })
}
