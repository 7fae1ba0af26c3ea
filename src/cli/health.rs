//! `drip health`: checks whether a running gateway is ready, or with `--live` whether it is alive.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use config::{self, AdminAddress};
use gateway::server::reachable;
use tools::complain::complain;

/// Timeout of the connection, and of each part of the response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum size of a response, in bytes.
const MAX_SIZE: u64 = 64 << 10;

/// Admin address of a file that does not configure one.
const DEFAULT_ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);

/// Prints the response of `/readyz`, or with `is_live` of `/healthz`.
///
/// The address is `address`, or the admin port in `file`. Succeeds if the gateway is ready, or with
/// `is_live` if it is alive.
pub fn health(address: Option<&AdminAddress>, file: &Path, is_live: bool) -> ExitCode {
    match find_address(address, file).and_then(|address| request_health(address, is_live)) {
        Ok((is_good, text)) => {
            // The exit code reports the result, too.
            let _closed = io::stdout().write_all(text.as_bytes());
            ExitCode::from(u8::from(!is_good))
        }
        Err(error) => {
            complain(format_args!("drip: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns the given admin address, or the one in the file.
fn find_address(address: Option<&AdminAddress>, file: &Path) -> io::Result<SocketAddr> {
    if let Some(address) = address {
        let mut found = address.to_string().to_socket_addrs()?;
        let none = || io::Error::other(format!("{address} does not resolve to an address"));
        return found.next().ok_or_else(none);
    }
    let text = config::read(file).map_err(io::Error::other)?;
    let admin = match config::parse(&text, file, config::has_admin_token()) {
        Ok(settings) => settings.server.admin,
        // A running gateway is not unhealthy because its file was saved with an error.
        Err(_) => config::admin_of_broken(&text, file).unwrap_or(Some(DEFAULT_ADMIN)),
    };
    admin.map(reachable).ok_or_else(|| {
        io::Error::other(format!(
            "{}: server.admin is \"off\", so the health cannot be read; set an address, such as admin = \"127.0.0.1:9090\"",
            file.display()
        ))
    })
}

/// Requests a check. Returns whether the response is the good one, and its body.
fn request_health(address: SocketAddr, is_live: bool) -> io::Result<(bool, String)> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let path = if is_live { "/healthz" } else { "/readyz" };
    let answer = get(address, path).map_err(|error| named(describe_timeout(error)))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap_or_default();
    let is_good = match (status, body.lines().next()) {
        ("200", Some("ok")) if is_live => true,
        ("200", Some("ready")) if !is_live => true,
        ("503", Some("not ready")) if !is_live => false,
        _ => {
            let what = "this is not the admin port of a gateway";
            return Err(named(io::Error::other(what)));
        }
    };
    Ok((is_good, body.to_owned()))
}

/// Makes a timeout error readable: the system reports a read timeout as `WouldBlock`.
fn describe_timeout(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", PATIENCE.as_secs()),
        ),
        _ => error,
    }
}

/// Sends a GET request. Returns the whole response, with its head.
fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    // Sent in one piece: a server that is no gateway may answer the first piece and disconnect.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes())?;
    let mut answer = String::new();
    socket.take(MAX_SIZE).read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_checked_over_loopback() {
        for (listens, address) in [
            ("0.0.0.0:9090", "127.0.0.1:9090"),
            ("[::]:9", "[::1]:9"),
            ("10.0.0.1:9090", "10.0.0.1:9090"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), address);
        }
    }
}
