//! Connections of a worker, by server. The idle connection used last is reused first.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use config::{Http2, Origin};
use foldhash::fast::RandomState;
use limit::{Moment, Usage};

use super::addresses::KnownAddresses;
use super::connection::Connection;
use super::dial::Dialer;
use super::error::OriginError;
use super::http1::Http1Connection;
use super::http2::Http2Connections;
use super::server::Server;
use super::shortage;
use super::stream::OriginStream;
use crate::time::clock;

/// Interval between checks of the connections to a server.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Connections of a worker, by server.
#[derive(Debug, Default)]
pub struct Pools(Rc<RefCell<ByServer>>);

/// Keyed by the server's address in memory, which stays unique because each pool holds its server.
type ByServer = HashMap<*const Server, Rc<Pool>, RandomState>;

/// Connections to one server: idle ones over HTTP/1, and shared ones over HTTP/2.
#[derive(Debug)]
pub struct Pool {
    server: Arc<Server>,
    idle: Rc<IdleConnections<Http1Connection>>,
    shared: Rc<Http2Connections>,
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
    /// The server is least likely to have closed the one used last. `surely`: whether to ask the
    /// kernel if the connection is still open, because the request cannot be sent again.
    pub(crate) fn take(
        &self,
        settings: &Origin,
        needs: Needs,
        now: Moment,
        surely: bool,
    ) -> Option<Connection> {
        if needs == Needs::Any
            && let Some(exchange) = self.shared.take(settings, now)
        {
            return Some(Connection::Http2(Box::new(exchange)));
        }
        self.idle.take(now, surely).map(Connection::Http1)
    }

    /// Opens a new connection, within `connect_timeout`.
    pub(crate) async fn connect(
        self: &Rc<Self>,
        settings: &Origin,
        dialer: &Dialer,
        needs: Needs,
    ) -> Result<Connection, OriginError> {
        let (limit, url) = (settings.connect_timeout, self.server.url());
        let opened = shortage::open_within(limit, url, async || {
            self.open(settings, dialer, needs).await
        })
        .await;
        if opened.is_ok() && !self.is_swept.replace(true) {
            actix_rt::spawn(sweep(Rc::downgrade(self), dialer.clone()));
        }
        opened
    }

    fn http1(&self, stream: OriginStream, settings: &Origin) -> Connection {
        let usage = Usage::new(&settings.reuse_limits(), clock::now());
        Connection::Http1(Box::new(Http1Connection::new(stream, &self.idle, usage)))
    }

    /// Returns whether there is no connection to the server, in use or idle.
    fn is_empty(&self) -> bool {
        // Each HTTP/1 connection holds a reference to the idle ones.
        Rc::weak_count(&self.idle) == 0 && self.shared.is_empty()
    }

    async fn open(
        &self,
        settings: &Origin,
        dialer: &Dialer,
        needs: Needs,
    ) -> io::Result<Connection> {
        let url = self.server.url();
        if needs == Needs::Own && url.is_h2c() {
            let stream = self.server.opened(dialer.open(url, false).await)?;
            let exchange = Box::pin(self.shared.begin_own(stream, settings)).await?;
            return Ok(Connection::Http2(Box::new(exchange)));
        }
        let may_choose = url.is_encrypted() && settings.http2 == Http2::Auto;
        if needs != Needs::Any || !(may_choose || url.is_h2c()) {
            let stream = self.server.opened(dialer.open(url, false).await)?;
            return Ok(self.http1(stream, settings));
        }
        // Boxed: few origins speak HTTP/2, and the state of a waiting request should be small.
        Box::pin(self.open_shared(settings, dialer)).await
    }

    /// Opens a connection whose server may speak HTTP/2.
    ///
    /// If many requests need one, one of them opens it for all.
    async fn open_shared(&self, settings: &Origin, dialer: &Dialer) -> io::Result<Connection> {
        let url = self.server.url();
        let _opening = loop {
            if let Some(opening) = self.shared.opening().await {
                break opening;
            }
            if let Some(exchange) = self.shared.take(settings, clock::now()) {
                return Ok(Connection::Http2(Box::new(exchange)));
            }
        };
        let stream = match self.server.opened(dialer.open(url, true).await) {
            Ok(stream) => stream,
            // A congested connection is better than none.
            Err(error) => {
                let exchange = self.shared.take_any(settings, clock::now()).ok_or(error)?;
                return Ok(Connection::Http2(Box::new(exchange)));
            }
        };
        if !url.is_h2c() && !stream.chose_http2() {
            self.shared.note_http1();
            return Ok(self.http1(stream, settings));
        }
        let exchange = self.shared.begin(stream, settings).await?;
        Ok(Connection::Http2(Box::new(exchange)))
    }
}

/// Closes idle connections that may not be reused, and connections that are lost.
///
/// It closes idle connections that the server has closed or that have expired, and connections to
/// addresses that the server's name has dropped. If a request needs a descriptor, it closes all
/// idle connections. It ends when no connection is left.
async fn sweep(pool: Weak<Pool>, dialer: Dialer) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(pool) = pool.upgrade() else { return };
        let known = &pool.idle.addresses;
        if let Some(found) = dialer.addresses(pool.server.url()).await {
            known.note(&found);
        }
        let now = clock::coarse_now();
        pool.idle
            .sweep(now, |connection| !connection.has_left(known));
        let lost = pool.shared.sweep(now, |address| known.has_left(address));
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

/// Connection that can wait for its next request.
pub(super) trait Reusable {
    /// Returns whether the connection can be used again.
    ///
    /// It must not have expired. The server must not have closed it, nor sent bytes that belong to
    /// no response. This checks what the runtime already knows; `surely` also asks the kernel.
    fn is_usable(&mut self, now: Moment, surely: bool) -> bool;
}

/// Idle connections to one server. The one used last is on top.
///
/// They are boxed, so that little memory moves when a request takes one and gives it back.
#[derive(Debug)]
pub(super) struct IdleConnections<C> {
    idle: RefCell<Vec<Box<C>>>,
    /// Addresses of the server's name.
    pub(super) addresses: KnownAddresses,
}

impl<C> Default for IdleConnections<C> {
    fn default() -> Self {
        Self {
            idle: RefCell::default(),
            addresses: KnownAddresses::default(),
        }
    }
}

impl<C: Reusable> IdleConnections<C> {
    /// Takes the connection used last that is still [usable](Reusable::is_usable).
    pub(super) fn take(&self, now: Moment, surely: bool) -> Option<Box<C>> {
        let mut idle = self.idle.borrow_mut();
        loop {
            let mut last = idle.pop()?;
            if last.is_usable(now, surely) {
                return Some(last);
            }
        }
    }

    /// Keeps a connection, unless there are already `most`, or a request needs its descriptor.
    pub(super) fn keep(&self, connection: Box<C>, most: usize) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < most && !shortage::is_short() {
            idle.push(connection);
        }
    }

    /// Closes connections that are no longer usable, or for which `wanted` is false.
    ///
    /// Closes all connections if a request needs a descriptor.
    pub(super) fn sweep(&self, now: Moment, mut wanted: impl FnMut(&mut C) -> bool) {
        let is_short = shortage::is_short();
        let mut idle = self.idle.borrow_mut();
        idle.retain_mut(|it| !is_short && wanted(it) && it.is_usable(now, false));
    }
}

/// Idle connections of one client, at most one per server. Dropped with the client's connection.
#[derive(Debug, Default)]
pub struct TiedConnections(RefCell<Vec<Tied>>);

#[derive(Debug)]
struct Tied {
    server: Arc<Server>,
    connection: Box<Http1Connection>,
}

impl TiedConnections {
    /// Takes the connection to `server`, if there is a [usable](Reusable::is_usable) one.
    pub(super) fn take(
        &self,
        server: &Arc<Server>,
        now: Moment,
        surely: bool,
    ) -> Option<Box<Http1Connection>> {
        let mut tied = self.0.borrow_mut();
        let at = tied.iter().position(|it| Arc::ptr_eq(&it.server, server))?;
        let mut connection = tied.swap_remove(at).connection;
        connection.is_usable(now, surely).then_some(connection)
    }

    /// Keeps a connection, unless a request needs its descriptor. Closes an older one.
    pub(super) fn keep(&self, server: &Arc<Server>, connection: Box<Http1Connection>) {
        let mut tied = self.0.borrow_mut();
        tied.retain(|it| !Arc::ptr_eq(&it.server, server) && !it.server.is_retired());
        if !shortage::is_short() && !server.is_retired() {
            tied.push(Tied {
                server: Arc::clone(server),
                connection,
            });
        }
    }
}
