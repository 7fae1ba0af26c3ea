//! What both legs ask of their TCP connections.

use std::time::Duration;

use rustix::io;
use rustix::net::sockopt;
use tokio::net::TcpStream;

/// Probes that a silent peer may leave unanswered. With the intervals between them that takes as long again as the first
/// one waits.
const PROBES: u32 = 4;

/// Has the kernel ask a peer that has said nothing for `idle` whether it is there; `None`: it does not ask. A peer that
/// has vanished is noticed after twice that time.
pub fn set_keepalive(socket: &TcpStream, idle: Option<Duration>) {
    if let Some(idle) = idle {
        // Where that fails the connection is gone already, which the next read finds.
        let _gone = try_set(socket, idle);
    }
}

fn try_set(socket: &TcpStream, idle: Duration) -> io::Result<()> {
    let second = Duration::from_secs(1);
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, idle.max(second))?;
    sockopt::set_tcp_keepintvl(socket, (idle / PROBES).max(second))?;
    sockopt::set_tcp_keepcnt(socket, PROBES)
}
