//! Number of client connections that the system's limit of file descriptors allows.
//!
//! Each connection, log file, timer and watched file of a process takes one descriptor.

use std::{fs, io};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors opened at the start: signals, the watch of the file, and threads without clients.
const AT_START: u64 = 15;
/// Descriptors opened at the start for the admin port.
const AT_START_FOR_ADMIN: u64 = 7;
/// Descriptors opened at the start for each worker.
const AT_START_PER_WORKER: u64 = 5;
/// Minimum number for clients, their connections to origins, and log files.
const MIN_FOR_REQUESTS: u64 = 12;

/// Number of open descriptors of this process if it is unknown.
const ESTIMATED_OPEN: u64 = 64;
/// Reserve for files, Redis and the admin port.
const RESERVED_FOR_GATEWAY: u64 = 128;
/// Reserve for connections to origins at the maximum number of clients.
///
/// Most clients wait or are idle, and few requests are at an origin at once. A request without a
/// descriptor waits for one.
const RESERVED_FOR_ORIGINS: u64 = 256;

/// Log message if the descriptors allow fewer than half of the configured clients.
const FEWER_CLIENTS: &str = "fewer clients than max_connections are accepted at once: the limit of file descriptors is too low; raise it to `needed` (LimitNOFILE= in systemd, ulimit -n), or lower max_connections";

/// Raises this process's soft limit to the hard limit, and returns it; `None`: no limit.
///
/// The lower soft limit exists for programs that use select(2), which takes at most 1024
/// descriptors.
pub(super) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if current == maximum || setrlimit(Resource::Nofile, raised).is_err() {
        return current;
    }
    maximum
}

/// Raises the limit, and checks that the gateway can start under it.
///
/// Threads without a descriptor at their start panic.
///
/// # Errors
///
/// The limit is too low. The text has the limit and the minimum.
pub fn check_limit(server: &config::Server) -> io::Result<()> {
    let Some(limit) = raise_limit() else {
        return Ok(());
    };
    // If the number is unknown: the three standard streams.
    let needed = min_descriptors(server, count_open().unwrap_or(3));
    if limit >= needed {
        return Ok(());
    }
    let workers = server.workers;
    Err(io::Error::other(format!(
        "the limit of file descriptors is {limit}, and the gateway needs at least {needed} with workers = {workers}; raise the limit (LimitNOFILE= in systemd, ulimit -n)"
    )))
}

/// Returns the minimum number of descriptors of a gateway, if `open` are open before its start.
fn min_descriptors(server: &config::Server, open: u64) -> u64 {
    let workers = (server.workers.get() as u64).saturating_mul(AT_START_PER_WORKER);
    let admin = server.admin.map_or(0, |_| AT_START_FOR_ADMIN);
    let sockets = server.listen.len() as u64;
    (open + AT_START + admin + sockets + MIN_FOR_REQUESTS).saturating_add(workers)
}

/// Returns the maximum number of clients under this limit, at most `max_connections`.
///
/// Logs if they are fewer than half of it. Call it when the sockets and threads of the start are
/// open.
pub(super) fn max_clients(max_connections: usize, limit: Option<u64>) -> usize {
    let Some(limit) = limit else {
        return max_connections;
    };
    let open = count_open().unwrap_or(ESTIMATED_OPEN);
    let clients = clients_within(limit, open);
    if clients >= max_connections {
        return max_connections;
    }
    let reserved = open + RESERVED_FOR_GATEWAY + RESERVED_FOR_ORIGINS;
    let needed = (max_connections as u64).saturating_add(reserved);
    // Few gateways ever have half of `max_connections`. The headline of the live page reports a
    // gateway whose connections are all in use.
    if clients < max_connections / 2 {
        tracing::warn!(clients, max_connections, limit, needed, "{FEWER_CLIENTS}");
    }
    clients
}

/// Returns why `max_connections` exceeds this process's hard limit; `None` if it does not.
pub(super) fn why_too_many(max_connections: usize) -> Option<String> {
    let limit = getrlimit(Resource::Nofile).maximum?;
    let clients = clients_within(limit, count_open().unwrap_or(ESTIMATED_OPEN));
    (clients < max_connections).then(|| {
        format!(
            "the limit here is {limit} file descriptors: at most {clients} clients are connected at once; raise the limit of the service (LimitNOFILE=), or lower max_connections"
        )
    })
}

/// Returns the number of clients that fit beside `open` descriptors and the reserves; at least one.
fn clients_within(limit: u64, open: u64) -> usize {
    // Under a low limit, the reserves are smaller: at most an eighth of the limit for the gateway,
    // and half of the rest for origins.
    let for_gateway = RESERVED_FOR_GATEWAY.min(limit / 8);
    let for_requests = limit.saturating_sub(open + for_gateway);
    let clients = for_requests - RESERVED_FOR_ORIGINS.min(for_requests / 2);
    usize::try_from(clients).unwrap_or(usize::MAX).max(1)
}

/// Returns the number of open descriptors of this process; `None` if it is unknown.
fn count_open() -> Option<u64> {
    let open = fs::read_dir("/proc/self/fd").ok()?;
    Some(open.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_descriptors_are_for_clients_with_a_reserve_for_origins() {
        for (limit, open, clients) in [
            (1_048_576, 30, 1_048_162),
            (20_000, 30, 19_586),
            (1024, 30, 610),
            (256, 30, 97),
            (64, 30, 13),
            (32, 30, 1),
            (20, 30, 1),
            (0, 0, 1),
        ] {
            assert_eq!(clients_within(limit, open), clients, "{limit}");
        }
    }
}
