//! Connections of a worker, by server. The idle connection used last is reused first.
//!
//! `http1` and `http2` have the connections, `dial` opens the sockets.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use config::{Http2, Origin};
use foldhash::fast::RandomState;
use limit::{Moment, Usage};

use super::connection::Connection;
use super::dial::Dialer;
use super::error::OriginError;
use super::http1::{Http1Connection, IdleConnections};
use super::http2::Http2Connections;
use super::server::Server;
use super::shortage;
use super::stream::OriginStream;
use crate::time::clock;

/// Interval between checks of the connections to a server.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Connections of a worker, by server.
#[derive(Default)]
pub struct Pools(Rc<RefCell<ByServer>>);

/// Keyed by the server's address in memory, which stays unique because each pool holds its server.
type ByServer = HashMap<*const Server, Rc<Pool>, RandomState>;

/// Connections to one server: idle ones over HTTP/1, and shared ones over HTTP/2.
pub struct Pool {
    server: Arc<Server>,
    idle: Rc<IdleConnections>,
    shared: Rc<Http2Connections>,
    /// Whether a task sweeps the connections.
    is_swept: Cell<bool>,
}

/// Requirement of a request for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Any version of HTTP.
    Any,
    /// HTTP/1, to switch to another protocol.
    Http1,
    /// A connection that no other request shares, because the client logs in on it.
    Own,
}

impl Pools {
    /// Returns the pool of a server. The pool is dropped when the server leaves the file.
    pub(crate) fn of(&self, server: &Arc<Server>) -> Rc<Pool> {
        let key = Arc::as_ptr(server);
        let mut pools = self.0.borrow_mut();
        if let Some(pool) = pools.get(&key) {
            return Rc::clone(pool);
        }
        let pool = Rc::new(Pool {
            server: Arc::clone(server),
            idle: Rc::default(),
            shared: Rc::default(),
            is_swept: Cell::new(false),
        });
        // A request may still use the pool after its server has left the file, but no connection is
        // kept for others.
        if !server.is_retired() {
            pools.insert(key, Rc::clone(&pool));
            let (retirement, pools) = (server.retirement(), Rc::downgrade(&self.0));
            actix_rt::spawn(async move {
                retirement.await;
                if let Some(pools) = pools.upgrade() {
                    pools.borrow_mut().remove(&key);
                }
            });
        }
        pool
    }
}

impl Pool {
    /// Takes a stream on a shared connection, or the idle connection used last.
    ///
    /// The server is least likely to have closed the one used last. `asks_kernel`: whether to check
    /// with the kernel that it is still open, because the request cannot be sent again.
    pub(crate) fn take(
        &self,
        settings: &Origin,
        needs: Needs,
        now: Moment,
        asks_kernel: bool,
    ) -> Option<Connection> {
        // `false`: not on a congested or suspect connection.
        if needs == Needs::Any
            && let Some(exchange) = self.shared.take(settings, now, false)
        {
            return Some(Connection::Http2(exchange));
        }
        self.idle.take(now, asks_kernel).map(Connection::Http1)
    }

    /// Opens a new connection, within `connect_timeout`.
    pub(crate) async fn connect(
        self: &Rc<Self>,
        settings: &Origin,
        dialer: &Dialer,
        needs: Needs,
    ) -> Result<Connection, OriginError> {
        let (timeout, url) = (settings.connect_timeout, self.server.url());
        let open = async || self.open(settings, dialer, needs).await;
        let opened = shortage::open_within(timeout, url, open).await;
        if opened.is_ok() && !self.is_swept.replace(true) {
            actix_rt::spawn(sweep(Rc::downgrade(self), dialer.clone()));
        }
        opened
    }

    /// Creates an HTTP/1 connection of this pool.
    fn http1(&self, stream: OriginStream, settings: &Origin) -> Connection {
        let usage = Usage::new(&settings.reuse_limits(), clock::now());
        Connection::Http1(Box::new(Http1Connection::new(stream, &self.idle, usage)))
    }

    /// Returns whether there is no connection to the server, in use or idle.
    fn is_empty(&self) -> bool {
        // Each HTTP/1 connection holds a reference to the idle ones.
        Rc::weak_count(&self.idle) == 0 && self.shared.is_empty()
    }

    /// Opens a connection of the version that the settings and `needs` demand.
    async fn open(
        &self,
        settings: &Origin,
        dialer: &Dialer,
        needs: Needs,
    ) -> io::Result<Connection> {
        let url = self.server.url();
        let may_choose_http2 = url.is_encrypted() && settings.http2 == Http2::Auto;
        if needs == Needs::Any && (may_choose_http2 || url.is_h2c()) {
            // Boxed: few origins speak HTTP/2, and the state of a waiting request should be small.
            return Box::pin(self.open_shared(settings, dialer)).await;
        }
        // From here on HTTP/2 is used only with prior knowledge (h2c).
        let stream = self.server.note_opened(dialer.open(url, false).await)?;
        if needs == Needs::Own && url.is_h2c() {
            let exchange = Box::pin(self.shared.begin(stream, settings, false)).await?;
            return Ok(Connection::Http2(exchange));
        }
        Ok(self.http1(stream, settings))
    }

    /// Opens a connection whose server may speak HTTP/2.
    ///
    /// If several requests need a connection at once, one of them opens it for all.
    async fn open_shared(&self, settings: &Origin, dialer: &Dialer) -> io::Result<Connection> {
        let url = self.server.url();
        let _opening = loop {
            if let Some(opening) = self.shared.opening().await {
                break opening;
            }
            if let Some(exchange) = self.shared.take(settings, clock::now(), false) {
                return Ok(Connection::Http2(exchange));
            }
        };
        let stream = match self.server.note_opened(dialer.open(url, true).await) {
            Ok(stream) => stream,
            // A congested connection is better than none.
            Err(error) => {
                let any = self.shared.take(settings, clock::now(), true);
                return any.map(Connection::Http2).ok_or(error);
            }
        };
        if !url.is_h2c() && !stream.chose_http2() {
            self.shared.note_http1();
            return Ok(self.http1(stream, settings));
        }
        let exchange = self.shared.begin(stream, settings, true).await?;
        Ok(Connection::Http2(exchange))
    }
}

/// Closes connections that may not be reused, and lost ones. Ends when no connection is left.
///
/// Closes idle connections that the server has closed or that have expired, and connections to
/// addresses that the server's name has dropped. If a request needs a descriptor, closes all idle
/// connections.
async fn sweep(pool: Weak<Pool>, dialer: Dialer) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let Some(pool) = pool.upgrade() else { return };
        let known = &pool.idle.addresses;
        if let Some(found) = dialer.addresses(pool.server.url()).await {
            known.update(&found);
        }
        let now = clock::coarse_now();
        pool.idle.sweep(now);
        let lost = pool.shared.sweep(now, |address| known.is_outdated(address));
        if lost > 0 {
            let server = pool.server.url();
            tracing::warn!(%server, lost, "connection lost: no answer to a ping over HTTP/2");
        }
        if pool.is_empty() {
            pool.is_swept.set(false);
            return;
        }
    }
}
