use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::{Rc, Weak};

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::body::FromClient;
use super::error::OriginError;
use crate::config::{Origin, Scheme, ServerUrl};

/// A worker's idle connections, by server.
#[derive(Debug, Default)]
pub struct Pools(RefCell<HashMap<ServerUrl, Rc<Pool>>>);

#[derive(Debug)]
pub(super) struct Pool {
    server: ServerUrl,
    idle: RefCell<Vec<SendRequest<FromClient>>>,
}

impl Pools {
    pub(super) fn of(&self, server: &ServerUrl) -> Rc<Pool> {
        let mut pools = self.0.borrow_mut();
        if let Some(pool) = pools.get(server) {
            return Rc::clone(pool);
        }
        let pool = Rc::new(Pool {
            server: server.clone(),
            idle: RefCell::default(),
        });
        pools.insert(server.clone(), Rc::clone(&pool));
        pool
    }
}

/// One connection, in use. Dropped, it is closed; [given back](Connection::give_back), it serves again.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<FromClient>,
    /// Whether it has carried a request before: then the origin may just be closing it.
    pub(super) reused: bool,
    most_idle: usize,
    pool: Weak<Pool>,
}

impl Connection {
    pub(super) fn give_back(self) {
        let Some(pool) = self.pool.upgrade() else {
            return;
        };
        let mut idle = pool.idle.borrow_mut();
        if idle.len() < self.most_idle && !self.sender.is_closed() {
            idle.push(self.sender);
        }
    }
}

impl Pool {
    /// The connection that was used last, which the origin is least likely to have closed.
    pub(super) fn take(self: &Rc<Self>, most_idle: usize) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|sender| !sender.is_closed());
        let ready = idle.iter().rposition(SendRequest::is_ready)?;
        let sender = idle.remove(ready);
        Some(Connection {
            sender,
            reused: true,
            most_idle,
            pool: Rc::downgrade(self),
        })
    }

    pub(super) async fn connect(
        self: &Rc<Self>,
        settings: &Origin,
    ) -> Result<Connection, OriginError> {
        let (most_idle, limit) = (settings.keep_alive, settings.connect_timeout);
        let server = || self.server.to_string();
        let connecting = tokio::time::timeout(limit, open(&self.server));
        let sender = connecting
            .await
            .map_err(|_| OriginError::ConnectTimeout {
                server: server(),
                limit,
            })?
            .map_err(|source| OriginError::Connect {
                server: server(),
                source,
            })?;
        Ok(Connection {
            sender,
            reused: false,
            most_idle,
            pool: Rc::downgrade(self),
        })
    }
}

async fn open(server: &ServerUrl) -> io::Result<SendRequest<FromClient>> {
    let ServerUrl::Tcp {
        scheme: Scheme::Http,
        host,
        port,
    } = server
    else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let stream = TcpStream::connect((&*host.bare(), port.get())).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    actix_rt::spawn(async move {
        // Whoever uses the connection is told what went wrong; an idle one that the origin closes is no news.
        let _closed = connection.with_upgrades().await;
    });
    Ok(sender)
}
