//! Options of the TCP connections to clients and to servers.

use std::time::Duration;

use rustix::io;
use rustix::net::sockopt;
use tokio::net::TcpStream;

/// Number of unanswered probes after which a connection is closed.
///
/// The interval between probes is chosen so that they take as long as the idle time before them.
const PROBES: u32 = 4;

/// Lets the kernel probe a peer that has sent nothing for `idle`; `None` turns probing off.
///
/// A peer that has vanished is detected after twice that time.
pub fn set_keepalive(socket: &TcpStream, idle: Option<Duration>) {
    if let Some(idle) = idle {
        // An error means that the connection is already closed. The next read detects that.
        let _disconnected = try_set(socket, idle);
    }
}

/// Sets the socket options for probing.
fn try_set(socket: &TcpStream, idle: Duration) -> io::Result<()> {
    // The kernel accepts no shorter time.
    let second = Duration::from_secs(1);
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, idle.max(second))?;
    sockopt::set_tcp_keepintvl(socket, (idle / PROBES).max(second))?;
    sockopt::set_tcp_keepcnt(socket, PROBES)
}
