//! The idle connections of a worker, by server. The connection used last is used next.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::connection::Connection;
use super::dial::Dialer;
use super::error::OriginError;
use super::http1::Http1Connection;
use super::http2::Http2Connections;
use super::idle::IdleConnections;
use super::server::Server;
use super::shortage;
use super::stream::OriginStream;
use crate::config::{Http2, Origin};

/// The idle connections of a worker, by server.
#[derive(Debug, Default)]
pub struct Pools(Rc<RefCell<ByServer>>);

/// Keyed by the server's address in memory, which stays unique because each pool holds its server.
type ByServer = HashMap<*const Server, Rc<Pool>, RandomState>;

/// The connections to one server: idle ones over HTTP/1, and shared ones over HTTP/2.
#[derive(Debug)]
pub struct Pool {
    server: Arc<Server>,
    idle: Rc<IdleConnections<Http1Connection>>,
    shared: Rc<Http2Connections>,
}

/// What a request needs of its connection.
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
        });
        // A request that was waiting when its server left the file may still use the pool, but no
        // connection is kept for others.
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
    /// Takes a place on a shared connection, or the idle connection used last.
    ///
    /// The server is least likely to have closed that one. `surely`: asks the kernel whether it is
    /// still open, because the request cannot be sent twice.
    pub(crate) fn take(&self, needs: Needs, surely: bool) -> Option<Connection> {
        if needs == Needs::Any
            && let Some(exchange) = self.shared.take()
        {
            return Some(Connection::Http2(Box::new(exchange)));
        }
        self.idle.take(surely).map(Connection::Http1)
    }

    /// Opens a new connection, within `connect_timeout`.
    pub(crate) async fn connect(
        &self,
        settings: &Origin,
        dialer: &Dialer,
        needs: Needs,
    ) -> Result<Connection, OriginError> {
        let (limit, url) = (settings.connect_timeout, self.server.url());
        shortage::open_within(limit, url, async || {
            self.open(settings, dialer, needs).await
        })
        .await
    }

    fn http1(&self, stream: OriginStream) -> Connection {
        Connection::Http1(Box::new(Http1Connection::new(stream, &self.idle)))
    }

    async fn open(
        &self,
        settings: &Origin,
        dialer: &Dialer,
        needs: Needs,
    ) -> io::Result<Connection> {
        let url = self.server.url();
        if needs == Needs::Own && url.is_h2c() {
            let stream = dialer.open(url, false).await?;
            let beginning = self.shared.begin_own(stream, settings.max_header_size);
            let exchange = Box::pin(beginning).await?;
            return Ok(Connection::Http2(Box::new(exchange)));
        }
        let may_choose = url.is_encrypted() && settings.http2 == Http2::Auto;
        if needs != Needs::Any || !(may_choose || url.is_h2c()) {
            let stream = dialer.open(url, false).await?;
            return Ok(self.http1(stream));
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
            if let Some(exchange) = self.shared.take() {
                return Ok(Connection::Http2(Box::new(exchange)));
            }
        };
        let stream = match dialer.open(url, true).await {
            Ok(stream) => stream,
            // A congested connection is better than none.
            Err(error) => {
                let exchange = self.shared.take_any().ok_or(error)?;
                return Ok(Connection::Http2(Box::new(exchange)));
            }
        };
        if !url.is_h2c() && !stream.chose_http2() {
            self.shared.note_http1();
            return Ok(self.http1(stream));
        }
        let (largest, idle) = (settings.max_header_size, settings.keep_alive);
        let exchange = self.shared.begin(stream, largest, idle).await?;
        Ok(Connection::Http2(Box::new(exchange)))
    }
}
