//! The PROXY protocol: a header with which a proxy names its client before the client's first byte.
//!
//! The header comes before TLS. The rules are those of haproxy's `doc/proxy-protocol.txt`. In the
//! texts of the errors, "it" is the header.

mod header;

use std::future::poll_fn;
use std::io;
use std::rc::Rc;

use rustix::net::{RecvFlags, recv};
use thiserror::Error;
use tokio::time::{sleep, timeout};

pub use header::{InvalidHeader, MAX, ProxyHeader, parse};

use super::socket::Peek;
use super::stop::StopSignal;
use super::timeouts::{FIRST_REQUEST, Timeouts};

/// Reason why a connection has no valid header.
#[derive(Debug, Error)]
pub enum ProxyHeaderError {
    /// The connection ended before its first byte, or the gateway is stopping.
    #[error("the connection ended before it")]
    Unsent,
    /// The connection ended within the header.
    #[error("the connection ended within it")]
    Incomplete,
    /// The peer did not complete the header within `header_timeout`.
    #[error("it was not complete within header_timeout")]
    TimedOut,
    /// The connection does not begin with a header.
    #[error(transparent)]
    Invalid(#[from] InvalidHeader),
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] io::Error),
}

/// Reads exactly the header from the start of a connection, and no byte more.
pub async fn read_proxy_header<S: Peek>(
    socket: &S,
    timeouts: &Timeouts,
    stop: &Rc<StopSignal>,
) -> Result<ProxyHeader, ProxyHeaderError> {
    let stop = stop.sleeper();
    let stopping = async {
        poll_fn(|cx| stop.poll_stopping(cx)).await;
        // The header may be in transit: it gets the same time as a connection's first request.
        sleep(FIRST_REQUEST).await;
    };
    tokio::select! {
        read = timeout(timeouts.header, read_header(socket)) => {
            read.unwrap_or(Err(ProxyHeaderError::TimedOut))
        }
        () = stopping => Err(ProxyHeaderError::Unsent),
    }
}

/// Waits for bytes, and takes them until the header is complete.
async fn read_header<S: Peek>(socket: &S) -> Result<ProxyHeader, ProxyHeaderError> {
    let mut taken = Vec::new();
    loop {
        socket.wait_readable().await?;
        match socket.try_read(|| take_available(socket, &mut taken)) {
            Ok(header) => return header,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Appends the available bytes of the header to `taken`. Returns `WouldBlock` if more must come.
///
/// The bytes are peeked first, because bytes after the header must stay in the socket. The inner
/// result is that of a header whose end has come, or that is invalid.
fn take_available(
    socket: &impl Peek,
    taken: &mut Vec<u8>,
) -> io::Result<Result<ProxyHeader, ProxyHeaderError>> {
    let mut bytes = [0; MAX];
    loop {
        let count = recv(socket.fd(), &mut bytes, RecvFlags::PEEK)?.1;
        if count == 0 {
            return Ok(Err(if taken.is_empty() {
                ProxyHeaderError::Unsent
            } else {
                ProxyHeaderError::Incomplete
            }));
        }
        let before = taken.len();
        taken.extend_from_slice(&bytes[..count]);
        let header = match parse(taken) {
            Ok(header) => header,
            Err(invalid) => return Ok(Err(invalid.into())),
        };
        // While the header is incomplete, all bytes belong to it.
        let end = header.map_or(taken.len(), |(_, end)| end);
        recv(socket.fd(), &mut bytes[..end - before], RecvFlags::empty())?;
        if let Some((header, _)) = header {
            return Ok(Ok(header));
        }
    }
}
