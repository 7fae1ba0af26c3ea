//! Connections to a Redis whose replies are bounded.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt as _;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::Connect;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionInfo, IntoConnectionInfo, Pipeline, RedisFuture,
    RedisResult, Value,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::AbortHandle;

use super::reply_scan::{BadReply, ReplyScan};
use super::socket::{self, Socket};
use crate::tls::Authorities;

/// Timeout for connecting to a node of a cluster.
///
/// Connecting to a cluster connects to the nodes of its URL, then to all that these tell of. A
/// silent node, even a replica, delays both steps by this, and both have to fit into the time that
/// the store takes for connecting.
pub(super) const NODE_CONNECTED: Duration = Duration::from_millis(800);

/// What the text of an error begins with if the store sent what no Redis sends.
pub(super) const NOT_REDIS: &str = "what answers is not a usable Redis: ";

thread_local! {
    /// The authorities that sign the certificates of a cluster's nodes; `None`: those of the system.
    ///
    /// The client of a cluster opens connections by itself, later ones too, on the thread that it
    /// was made on. It passes on only what is in a URL. A thread has one store.
    static OF_NODES: RefCell<Option<Authorities>> = const { RefCell::new(None) };
}

/// From now on this thread verifies nodes of clusters by these authorities.
pub(super) fn trust_nodes(authorities: Option<&Authorities>) {
    OF_NODES.set(authorities.cloned());
}

/// A connection to one server. Requests that wait for replies share it.
#[derive(Clone)]
pub(super) struct BoundedConnection {
    connection: MultiplexedConnection,
    bad: Arc<OnceLock<BadReply>>,
    _driver: Arc<Driver>,
}

/// The task that moves the bytes. It ends with the last user of the connection.
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
        let bad = Arc::<OnceLock<BadReply>>::default();
        let stream = Bounded {
            socket: socket::open(info.addr(), authorities).await?,
            scan: ReplyScan::default(),
            bad: Arc::clone(&bad),
        };
        let settings = info.redis_settings();
        let (connection, driver) =
            MultiplexedConnection::new_with_config(settings, stream, config).await?;
        let driver = tokio::spawn(driver).abort_handle();
        Ok(Self {
            connection,
            bad,
            _driver: Arc::new(Driver(driver)),
        })
    }
}

impl BoundedConnection {
    /// Sends all commands in one write. Returns a reply or an error for each.
    pub(super) async fn send_all(
        &self,
        pipeline: &Pipeline,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        let sent = pipeline.query_async(&mut self.connection.clone()).await;
        // The client drops what waits in a pipeline, without the reason.
        sent.map_err(|error| self.bad.get().map_or(error, |bad| bad_reply(bad).into()))
    }
}

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
            let authorities = OF_NODES.with_borrow(Clone::clone);
            let opening = Self::open(&info, config, authorities.as_ref());
            let opened = tokio::time::timeout(NODE_CONNECTED, opening).await;
            opened.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        }
        .boxed()
    }
}

impl ConnectionLike for BoundedConnection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        self.connection.req_packed_command(cmd)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.connection.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}

/// A socket that fails when a reply is too large, or is none.
struct Bounded {
    socket: Socket,
    scan: ReplyScan,
    /// Every later read fails, too.
    bad: Arc<OnceLock<BadReply>>,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if self.bad.get().is_none() {
            ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
            match self.scan.read(&buf.filled()[before..]) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(bad) => drop(self.bad.set(bad)),
            }
        }
        buf.set_filled(before);
        Poll::Ready(Err(self
            .bad
            .get()
            .map_or_else(|| io::ErrorKind::InvalidData.into(), bad_reply)))
    }
}

impl AsyncWrite for Bounded {
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
