//! Number of client connections that the limit of file descriptors allows.

use std::{fs, io};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors opened at the start: signals, the watch of the file, and threads without clients.
const START: u64 = 15;
/// Descriptors opened at the start for the admin port.
const ADMIN: u64 = 7;
/// Descriptors opened at the start for each worker.
const WORKER: u64 = 5;
/// Minimum for some clients, their connections to origins, and log files.
const FIRST: u64 = 12;

/// Descriptors for files, Redis and the admin port.
const OWN: u64 = 128;
/// Descriptors for connections to origins at the maximum number of clients.
///
/// Most clients wait or are idle, and few requests are at an origin at once. A request without a
/// descriptor waits for one.
const ORIGINS: u64 = 256;

/// Log message if the descriptors allow fewer clients than configured.
const FEWER: &str = "fewer clients than max_connections are accepted at once: the limit of file descriptors is too low; raise it to `needed` (LimitNOFILE= in systemd, ulimit -n), or lower max_connections";

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
    // Usually the three standard streams.
    let needed = needed(server, open().unwrap_or(3));
    if limit >= needed {
        return Ok(());
    }
    let workers = server.workers;
    Err(io::Error::other(format!(
        "the limit of file descriptors is {limit}, and the gateway needs at least {needed} with workers = {workers}; raise the limit (LimitNOFILE= in systemd, ulimit -n)"
    )))
}

/// Minimum number of descriptors of a gateway. `open`: descriptors open before its start.
fn needed(server: &config::Server, open: u64) -> u64 {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let workers = count(server.workers.get()).saturating_mul(WORKER);
    let admin = server.admin.map_or(0, |_| ADMIN);
    let own = open + START + admin + count(server.listen.len()) + FIRST;
    own.saturating_add(workers)
}

/// Returns the maximum number of clients under this limit, at most `max_connections`.
///
/// Logs if they are fewer. Call it when the sockets and threads of the start are open.
pub(super) fn clients(max_connections: usize, limit: Option<u64>) -> usize {
    let Some(limit) = limit else {
        return max_connections;
    };
    let open = usually_open();
    let fit = fitting(limit, open);
    if fit >= max_connections {
        return max_connections;
    }
    let requested = u64::try_from(max_connections).unwrap_or(u64::MAX);
    let needed = requested.saturating_add(open + OWN + ORIGINS);
    // A user who kept the default does not need as many.
    if fit < max_connections / 2 {
        tracing::warn!(clients = fit, max_connections, limit, needed, "{FEWER}");
    } else {
        tracing::info!(clients = fit, max_connections, limit, needed, "{FEWER}");
    }
    fit
}

/// Reason why `max_connections` exceeds this process's hard limit; `None` if it does not.
pub(super) fn too_many(max_connections: usize) -> Option<String> {
    let limit = getrlimit(Resource::Nofile).maximum?;
    let fit = fitting(limit, usually_open());
    (fit < max_connections).then(|| {
        format!(
            "the limit here is {limit} file descriptors: at most {fit} clients are connected at once; raise the limit of the service (LimitNOFILE=), or lower max_connections"
        )
    })
}

/// Number of clients that fit beside `open` descriptors and a reserve; at least one.
fn fitting(limit: u64, open: u64) -> usize {
    // Under a low limit a reserve must not take all of it.
    let own = OWN.min(limit / 8);
    let shared = limit.saturating_sub(open + own);
    let clients = shared - ORIGINS.min(shared / 2);
    usize::try_from(clients).unwrap_or(usize::MAX).max(1)
}

/// Number of open descriptors of this process, or some dozens if it is unknown.
fn usually_open() -> u64 {
    /// Estimate of open descriptors if their number is unknown.
    const USUAL: u64 = 64;
    open().unwrap_or(USUAL)
}

/// Number of open descriptors of this process; `None` if it is unknown.
fn open() -> Option<u64> {
    let open = fs::read_dir("/proc/self/fd").ok()?;
    Some(u64::try_from(open.count()).unwrap_or(u64::MAX))
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
            assert_eq!(fitting(limit, open), clients, "{limit}");
        }
    }
}
