//! What the process lacks: connections, descriptors, local ports, room for its log.

use std::net::IpAddr;

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{count, is, listed, part, seconds, whole};
use super::silent;
use crate::observe::connections::IdleConnections;
use crate::status::views::Sample;

pub(super) fn connections_full(now: &Sample) -> Option<Finding> {
    let it = now.connections;
    if !it.is_full {
        return None;
    }
    let waiting = it.waiting;
    let (open, max) = (whole(it.open), whole(it.max));
    // The lower of the two limits is the one to raise.
    let (in_use, raise) = if it.few_descriptors {
        (
            format!(
                "The limit of file descriptors allows only {}",
                count(it.max, "client connection")
            ),
            "Raise the limit of file descriptors (`LimitNOFILE` in systemd, `ulimit -n`)",
        )
    } else {
        (
            format!("{open} of {max} connections are in use"),
            "Raise `server.max_connections`",
        )
    };
    let how_many = waiting.map_or(String::new(), |count| format!(" ({} now)", whole(count)));
    Some(Finding {
        weight: part(waiting.unwrap_or_default(), 1),
        title: format!("{in_use}; new clients wait in the kernel{how_many}"),
        evidence: format!(
            "{}A client that waits there gets no answer, and no other figure counts it.",
            it.idle.map_or(String::new(), |idle_ones| idle(idle_ones, it.open))
        ),
        remedy: format!(
            "{raise}, or {}; see Runbooks, DripConnectionsNearMax.",
            match it.idle {
                Some(idle) if idle.count * 4 < it.open => slow(now),
                _ => "lower `server.keep_alive` and `server.header_timeout` so that idle clients leave sooner"
                    .to_owned(),
            }
        ),
        ..Finding::new(Cause::ConnectionsFull, Severity::Bad)
    })
}

/// Whose connections are idle or, if none are, who has most of them, as sentences with a blank behind each.
fn idle(idle: IdleConnections, open: u64) -> String {
    let of = |most: Option<(IpAddr, u64)>, all: u64| {
        let most = most.filter(|(_, of_it)| *of_it > 1 && *of_it * 4 >= all);
        most.map(|(client, of_it)| (client, whole(of_it)))
    };
    let count = idle.count;
    if let Some((client, of_it)) = of(idle.most, count).filter(|_| count * 4 >= open) {
        let count_is = format!("{} {} idle", whole(count), is(count));
        return format!("{count_is}, {of_it} of them of {client}. ");
    }
    let most = of(idle.most_of_all, open);
    let most = most.map_or(String::new(), |(client, of_it)| {
        format!("{of_it} of all are of {client}. ")
    });
    match count {
        0 => format!("None is idle: all have requests that are not answered yet. {most}"),
        _ => format!("{} {} idle. {most}", whole(count), is(count)),
    }
}

/// What helps if connections are in use because answers take long.
fn slow(now: &Sample) -> String {
    let Some(origin) = silent(now) else {
        return "find out why answers take so long".to_owned();
    };
    let (name, silence) = (&origin.name, seconds(origin.silence()));
    format!("find out why origin {name} has answered nothing for {silence}")
}

pub(super) fn no_descriptors(recent: &Recent<'_>) -> Option<Finding> {
    let waited = recent.of_process(|it| it.descriptors.waited);
    let in_vain = recent.of_process(|it| it.descriptors.in_vain);
    let clients = recent.of_process(|it| it.descriptors.clients);
    if waited + in_vain + clients == 0 {
        return None;
    }
    let title = if waited + in_vain > 0 {
        "The gateway has no file descriptor for connections to origins"
    } else {
        "The gateway has no file descriptor for new clients"
    };
    let span = recent.seconds();
    let seen = [
        (waited > 0).then(|| format!("{} had to wait for one", count(waited, "request"))),
        (in_vain > 0).then(|| format!("{} got 503", count(in_vain, "request"))),
        (clients > 0).then(|| format!("accepting a client failed {}", count(clients, "time"))),
    ];
    let seen: Vec<_> = seen.into_iter().flatten().collect();
    let mut evidence = format!("In the last {span:.0} s, {}.", listed(&seen));
    if clients > 0 {
        evidence += " New clients wait in the kernel.";
    }
    Some(Finding {
        weight: part(waited + in_vain, 1),
        title: title.to_owned(),
        evidence,
        remedy: "Raise the limit of the process (`LimitNOFILE` in systemd, `ulimit -n`), or lower `server.max_connections`. The origin is not at fault."
            .to_owned(),
        ..Finding::new(Cause::NoDescriptors, Severity::Bad)
    })
}

pub(super) fn no_local_ports(recent: &Recent<'_>) -> Option<Finding> {
    let waited = recent.of_process(|it| it.local_ports.waited);
    let in_vain = recent.of_process(|it| it.local_ports.in_vain);
    if waited + in_vain == 0 {
        return None;
    }
    let seen = [
        (waited > 0).then(|| format!("{} had to wait for one", count(waited, "request"))),
        (in_vain > 0).then(|| format!("{} got 503", count(in_vain, "request"))),
    ];
    let seen: Vec<_> = seen.into_iter().flatten().collect();
    Some(Finding {
        weight: part(waited + in_vain, 1),
        title: "The gateway has no local port for connections to origins".to_owned(),
        evidence: format!("In the last {:.0} s, {}.", recent.seconds(), listed(&seen)),
        remedy: "Widen `net.ipv4.ip_local_port_range`, or raise `keep_alive` of the origin so that connections are used again. The origin is not at fault."
            .to_owned(),
        ..Finding::new(Cause::NoLocalPorts, Severity::Bad)
    })
}

pub(super) fn log_lost(recent: &Recent<'_>, now: &Sample) -> Option<Finding> {
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
