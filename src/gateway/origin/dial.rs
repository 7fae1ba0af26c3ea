//! Opens connections to servers over TCP, TLS and unix sockets.
//!
//! `dns` looks up names, `tls` encrypts, `pool` keeps the connections. `shortage` tries again if
//! this host lacks a file descriptor or a port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use config::{Host, OriginTls, Scheme, ServerUrl};
use rustix::io::Errno;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::dns::Names;
use super::stream::OriginStream;
use super::tls::Tls;
use crate::http::tcp::set_keepalive;

/// Time for which an address is tried alone before the next address is tried, too.
///
/// The value is that of RFC 8305.
const HEAD_START: Duration = Duration::from_millis(250);

/// Interval between attempts while the backlog of a unix socket is full.
const BACKLOG_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Opens connections to servers, for all workers.
#[derive(Clone, Default)]
pub struct Dialer {
    shared: Arc<Shared>,
    tls: Arc<Tls>,
}

/// State that the dialers of all origins share.
#[derive(Debug, Default)]
struct Shared {
    names: Names,
    /// `tcp_keepalive` in milliseconds; zero means off.
    keepalive: AtomicU64,
}

impl Dialer {
    /// Sets `tcp_keepalive` for connections that are opened from now on.
    pub fn set_keepalive(&self, idle: Option<Duration>) {
        let millis = idle.map_or(0, |idle| idle.as_millis());
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        self.shared.keepalive.store(millis, Ordering::Relaxed);
    }

    /// Returns a dialer with these TLS settings. With unchanged settings, TLS sessions are kept.
    pub(super) fn with_tls(&self, tls: &OriginTls) -> Self {
        let mut dialer = self.clone();
        if self.tls.settings != *tls {
            dialer.tls = Arc::new(Tls::new(tls.clone()));
        }
        dialer
    }

    /// Looks up a name now, and returns its addresses in ascending order.
    pub(crate) async fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = self.shared.names.refresh(name).await?;
        let mut addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
        addresses.sort();
        addresses.dedup();
        Ok(addresses)
    }

    /// Returns the addresses of the name of `server`; `None` if the server has no name.
    ///
    /// Old addresses are returned at once and looked up again in the background.
    pub(super) async fn addresses(&self, server: &ServerUrl) -> Option<Arc<[SocketAddr]>> {
        match server {
            ServerUrl::Tcp {
                host: Host::Name(name),
                address: None,
                ..
            } => self.shared.names.addresses(name).await.ok(),
            ServerUrl::Tcp { .. } | ServerUrl::Unix(_) => None,
        }
    }

    /// Returns whether another dialer has the same TLS state.
    pub(super) fn has_tls_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tls, &other.tls)
    }

    /// Opens a connection to `server`.
    ///
    /// `http2`: whether a server over TLS may choose HTTP/2.
    pub(super) async fn open(&self, server: &ServerUrl, http2: bool) -> io::Result<OriginStream> {
        let (scheme, host, port, address) = match server {
            ServerUrl::Unix(path) => return connect_unix(path).await.map(OriginStream::Unix),
            ServerUrl::Tcp {
                scheme,
                host,
                port,
                address,
            } => (scheme, host, port.get(), address.as_ref()),
        };
        let tcp = match (address, host) {
            (Some(address), _) | (None, Host::Address(address)) => {
                connect((*address, port).into()).await?
            }
            (None, Host::Name(name)) => {
                let addresses = self.shared.names.addresses(name).await?;
                let at_port = |mut address: SocketAddr| {
                    address.set_port(port);
                    connect(address)
                };
                connect_first(&addresses, at_port).await?
            }
        };
        tcp.set_nodelay(true)?;
        let keepalive = Duration::from_millis(self.shared.keepalive.load(Ordering::Relaxed));
        set_keepalive(&tcp, Some(keepalive).filter(|idle| !idle.is_zero()));
        match scheme {
            Scheme::Http | Scheme::H2c => Ok(OriginStream::Tcp(tcp)),
            Scheme::Https => {
                let tls = self.tls.connect(host, tcp, http2).await?;
                Ok(OriginStream::Tls(Box::new(tls)))
            }
        }
    }
}

/// Connects to a TCP server.
async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let connected = TcpStream::connect(address).await;
    connected.map_err(|error| distinguish_no_route(error, address))
}

/// Distinguishes a missing route to `address` from a missing local port.
///
/// The kernel has one error for both: no free port, and no address of the host from which the
/// server can be reached, such as `::1` on a host without IPv6. UDP has its own ports, so a UDP
/// socket only fails for the second reason.
fn distinguish_no_route(error: io::Error, address: SocketAddr) -> io::Error {
    if Errno::from_io_error(&error) != Some(Errno::ADDRNOTAVAIL) {
        return error;
    }
    let unspecified: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let route = UdpSocket::bind((unspecified, 0)).and_then(|socket| socket.connect(address));
    match route {
        Err(other) if Errno::from_io_error(&other) == Some(Errno::ADDRNOTAVAIL) => {
            // No longer the error that `shortage` knows as a missing port.
            io::Error::new(io::ErrorKind::AddrNotAvailable, error.to_string())
        }
        _ => error,
    }
}

/// Connects to a unix socket, and waits while its backlog is full.
///
/// For TCP the kernel waits. For a unix socket it returns an error at once.
async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(full) if full.kind() == io::ErrorKind::WouldBlock => {
                sleep(BACKLOG_RETRY_INTERVAL).await;
            }
            connected => return connected,
        }
    }
}

/// Returns the first connection that succeeds, or the last error.
///
/// The addresses are tried in order. The next one is tried when one refuses, or after
/// [`HEAD_START`] without a result.
async fn connect_first<T, C>(
    addresses: &[SocketAddr],
    connect: impl Fn(SocketAddr) -> C,
) -> io::Result<T>
where
    T: Send + 'static,
    C: Future<Output = io::Result<T>> + Send + 'static,
{
    let mut untried = addresses.iter();
    let mut trying = JoinSet::new();
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(address) = untried.next() {
            trying.spawn(connect(*address));
        }
        tokio::select! {
            tried = trying.join_next() => match tried {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => last_error = error,
                // The task has panicked.
                Some(Err(error)) => last_error = io::Error::other(error),
                None => return Err(last_error),
            },
            () = sleep(HEAD_START), if untried.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, UnixListener};
    use tokio::time::Instant;

    use super::*;

    /// Loopback addresses of both kinds, without a port.
    const BOTH: [&str; 2] = ["[::1]:0", "127.0.0.1:0"];

    fn both() -> Vec<SocketAddr> {
        BOTH.map(|it| it.parse().unwrap()).into()
    }

    #[tokio::test]
    async fn the_next_address_is_tried_where_one_refuses_in_either_order() {
        for address in BOTH {
            let listener = TcpListener::bind(address).await.unwrap();
            let (mut addresses, expected) = (both(), listener.local_addr().unwrap());
            let connect = |it: SocketAddr| TcpStream::connect((it.ip(), expected.port()));
            for _ in 0..2 {
                let stream = connect_first(&addresses, connect).await.unwrap();
                assert_eq!(stream.peer_addr().unwrap(), expected);
                addresses.reverse();
            }
        }
    }

    #[tokio::test]
    async fn if_all_addresses_refuse_the_error_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let connect = |it: SocketAddr| TcpStream::connect((it.ip(), port));
        let error = connect_first(&both(), connect).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = connect_first(&[], connect).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[tokio::test]
    async fn a_full_backlog_of_a_socket_file_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.sock");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let mut opening = JoinSet::new();
        for _ in 0..20 {
            let path = path.clone();
            opening.spawn(async move { connect_unix(&path).await });
        }
        sleep(BACKLOG_RETRY_INTERVAL * 4).await;
        for _ in 0..20 {
            listener.accept().await.unwrap();
        }
        assert!(opening.join_all().await.iter().all(Result::is_ok));
    }

    #[test]
    fn a_local_port_is_missing_only_if_the_host_has_a_route() {
        let local = "127.0.0.1:9".parse().unwrap();
        let missing = distinguish_no_route(Errno::ADDRNOTAVAIL.into(), local);
        assert_eq!(Errno::from_io_error(&missing), Some(Errno::ADDRNOTAVAIL));
        let refused = distinguish_no_route(Errno::CONNREFUSED.into(), local);
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_never_answers_costs_a_head_start() {
        let addresses = [1, 2, 3].map(|last| SocketAddr::from(([10, 0, 0, last], 0)));
        let began = Instant::now();
        let connected = connect_first(&addresses, |address| async move {
            if address.ip() != addresses[2].ip() {
                sleep(HEAD_START * 100).await;
            }
            Ok(address)
        });
        assert_eq!(connected.await.unwrap(), addresses[2]);
        assert!(began.elapsed() < HEAD_START * 3);
    }
}
