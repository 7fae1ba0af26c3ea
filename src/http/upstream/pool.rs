//! The idle connections of a worker, by server. The connection used last is used next.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::connection::Connection;
use super::dial::Dialer;
use super::error::OriginError;
use super::idle::IdleConnections;
use super::server::Server;
use crate::config::Origin;

/// The idle connections of a worker, by server.
#[derive(Debug, Default)]
pub struct Pools(Rc<RefCell<ByServer>>);

/// Keyed by the server's address in memory, which stays unique because each pool holds its server.
type ByServer = HashMap<*const Server, Rc<Pool>, RandomState>;

/// The idle connections to one server.
#[derive(Debug)]
pub struct Pool {
    server: Arc<Server>,
    idle: Rc<IdleConnections>,
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
    /// Takes the connection used last, which the server is least likely to have closed.
    ///
    /// `surely`: asks the kernel whether it is still open, because the request cannot be sent
    /// twice.
    pub(crate) fn take(&self, surely: bool) -> Option<Connection> {
        let last = self.idle.take(surely)?;
        Some(Connection::reuse(last, &self.idle))
    }

    /// Opens a new connection, within `connect_timeout`.
    pub(crate) async fn connect(
        &self,
        settings: &Origin,
        dialer: &Dialer,
    ) -> Result<Connection, OriginError> {
        let limit = settings.connect_timeout;
        let stream = dialer.open_within(self.server.url(), limit).await?;
        Ok(Connection::new(stream, &self.idle))
    }
}
