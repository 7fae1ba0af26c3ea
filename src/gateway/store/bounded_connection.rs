//! Connections to a Redis with a bound on the size of a reply.
//!
//! The server may be something else than a Redis, and send anything. `socket` opens the sockets,
//! `connection` chooses between one server and a cluster.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use config::tls::Authorities;
use futures_util::FutureExt as _;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::Connect;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionInfo, IntoConnectionInfo, Pipeline, RedisFuture,
    RedisResult, Value,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::AbortHandle;

use super::socket::{self, Socket};

/// Timeout for connecting to a node of a cluster.
///
/// The client connects to the nodes of its URL, then to all nodes that these report. A silent node,
/// even a replica, delays both steps by this timeout. Both have to fit into the store's own timeout
/// for connecting.
pub(super) const NODE_CONNECT_TIMEOUT: Duration = Duration::from_millis(800);

/// Beginning of the error text if the answer is not the protocol of Redis.
pub(super) const NOT_REDIS: &str = "the server is not a usable Redis: ";

/// Upper bound of the bytes received before a reply is complete.
///
/// Far above the replies of all scripts in a pipeline, and above the list of a cluster's slots. The
/// client buffers whatever the server sends, and uses up to 64 bytes for a value of four bytes.
const MAX_REPLY: usize = 2 * 1024 * 1024;

/// Upper bound of the quoted bytes of a foreign answer.
const MAX_QUOTED: usize = 40;

/// Reason why received bytes cannot be used.
#[derive(Debug, thiserror::Error)]
enum BadReply {
    /// The first byte begins no value of the protocol.
    #[error("its answer begins with \"{0}\"")]
    Foreign(String),
    /// The reply is longer than [`MAX_REPLY`].
    #[error("it sent a reply of more than {} MB", MAX_REPLY / 1024 / 1024)]
    TooLarge,
}

/// Count of the bytes received on a connection.
#[derive(Debug, Default)]
struct Received {
    /// Number of bytes since the last complete reply.
    bytes: AtomicUsize,
    /// Failure of the connection. Once it is set, all reads fail.
    bad: OnceLock<BadReply>,
}

impl Received {
    /// Records that a reply is complete.
    fn note_reply(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Counts received bytes. Fails if the reply is too large or does not begin like one of Redis.
    ///
    /// `is_first`: whether these are the first bytes of the connection.
    fn add(&self, received: &[u8], is_first: bool) -> Result<(), BadReply> {
        if is_first && received.first().is_some_and(|byte| !begins_value(*byte)) {
            let mut lines = received.split(|byte| matches!(byte, b'\r' | b'\n'));
            let line = lines.next().unwrap_or_default();
            let beginning = &line[..line.len().min(MAX_QUOTED)];
            return Err(BadReply::Foreign(beginning.escape_ascii().to_string()));
        }
        let before = self.bytes.fetch_add(received.len(), Ordering::Relaxed);
        if before + received.len() > MAX_REPLY {
            return Err(BadReply::TooLarge);
        }
        Ok(())
    }
}

/// Returns whether a value of Redis's protocol can begin with this byte.
fn begins_value(byte: u8) -> bool {
    b"+-:$*_#,(!=%~>|".contains(&byte)
}

thread_local! {
    /// Authorities that sign the certificates of a cluster's nodes; `None`: those of the system.
    ///
    /// The cluster client itself connects to new nodes, on the thread on which it was created, and
    /// passes only what is in a URL. So the authorities are here. A thread has one store.
    static NODE_AUTHORITIES: RefCell<Option<Authorities>> = const { RefCell::new(None) };
}

/// Sets the authorities by which this thread verifies nodes of clusters.
pub(super) fn trust_nodes(authorities: Option<&Authorities>) {
    NODE_AUTHORITIES.set(authorities.cloned());
}

/// Connection to one server, which many waiting commands share.
#[derive(Clone)]
pub(super) struct BoundedConnection {
    connection: MultiplexedConnection,
    received: Arc<Received>,
    _driver: Arc<Driver>,
}

/// Task that moves the bytes. It ends with the last user of the connection.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl BoundedConnection {
    /// Connects. Has no timeout: the caller must set one.
    pub(super) async fn open(
        info: &ConnectionInfo,
        config: AsyncConnectionConfig,
        authorities: Option<&Authorities>,
    ) -> RedisResult<Self> {
        let received = Arc::<Received>::default();
        let stream = BoundedSocket {
            socket: socket::open(info.addr(), authorities).await?,
            is_fresh: true,
            received: Arc::clone(&received),
        };
        let settings = info.redis_settings();
        let (connection, driver) =
            MultiplexedConnection::new_with_config(settings, stream, config).await?;
        let driver = tokio::spawn(driver).abort_handle();
        Ok(Self {
            connection,
            received,
            _driver: Arc::new(Driver(driver)),
        })
    }

    /// Sends all commands in one write. Returns a reply or an error for each.
    pub(super) async fn send_all(
        &self,
        pipeline: &Pipeline,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        let sent = pipeline.query_async(&mut self.connection.clone()).await;
        self.received.note_reply();
        // The client fails the waiting commands of a pipeline without the reason.
        let bad = self.received.bad.get();
        sent.map_err(|error| bad.map_or(error, |bad| bad_reply(bad).into()))
    }
}

/// Converts the reason to an error.
fn bad_reply(bad: &BadReply) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{NOT_REDIS}{bad}"))
}

impl Connect for BoundedConnection {
    fn connect_with_config<'a, T>(info: T, config: AsyncConnectionConfig) -> RedisFuture<'a, Self>
    where
        T: IntoConnectionInfo + Send + 'a,
    {
        async move {
            let info = info.into_connection_info()?;
            let authorities = NODE_AUTHORITIES.with_borrow(Clone::clone);
            let opening = Self::open(&info, config, authorities.as_ref());
            let opened = tokio::time::timeout(NODE_CONNECT_TIMEOUT, opening).await;
            opened.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        }
        .boxed()
    }
}

impl ConnectionLike for BoundedConnection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        async move {
            let reply = self.connection.req_packed_command(cmd).await;
            self.received.note_reply();
            reply
        }
        .boxed()
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        async move {
            let sending = self.connection.req_packed_commands(pipeline, offset, count);
            let replies = sending.await;
            self.received.note_reply();
            replies
        }
        .boxed()
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}

/// Socket that fails when a reply is too large or is not the protocol of Redis.
struct BoundedSocket {
    socket: Socket,
    /// Whether no byte has been received yet.
    is_fresh: bool,
    received: Arc<Received>,
}

impl AsyncRead for BoundedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if self.received.bad.get().is_none() {
            ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
            let is_first = std::mem::take(&mut self.is_fresh);
            match self.received.add(&buf.filled()[before..], is_first) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(bad) => drop(self.received.bad.set(bad)),
            }
        }
        buf.set_filled(before);
        let bad = self.received.bad.get();
        Poll::Ready(Err(
            bad.map_or_else(|| io::ErrorKind::InvalidData.into(), bad_reply)
        ))
    }
}

impl AsyncWrite for BoundedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_reply_is_bounded() {
        let received = Received::default();
        let half = vec![b'x'; MAX_REPLY / 2];
        assert!(received.add(b"$9999999\r\n", true).is_ok());
        for _ in 0..3 {
            received.note_reply();
            assert!(received.add(&half, false).is_ok() && received.add(&half, false).is_ok());
        }
        let bad = received.add(b"x", false);
        assert!(matches!(bad, Err(BadReply::TooLarge)), "{bad:?}");
    }

    #[test]
    fn a_foreign_answer_is_quoted() {
        for (answer, quoted) in [
            (
                &b"HTTP/1.1 400 Bad\r\nServer: x\r\n"[..],
                "HTTP/1.1 400 Bad",
            ),
            (b"SSH-2.0-OpenSSH_9.2p1\r\n", "SSH-2.0-OpenSSH_9.2p1"),
            (b"\x00\xFF\"a", r#"\x00\xff\"a"#),
        ] {
            let bad = Received::default().add(answer, true).unwrap_err();
            let says = format!("its answer begins with \"{quoted}\"");
            assert_eq!(bad.to_string(), says);
        }
    }
}
