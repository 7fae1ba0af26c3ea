use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use super::body::FromClient;
use super::dial::Dialer;
use super::error::OriginError;
use super::server::Server;
use super::stream::Stream;
use crate::config::Origin;
use crate::deadline::Deadline;

/// How many lines the head of an answer may have. Room for as many is taken at each answer, and much more of it makes
/// the allocator tidy up each time.
const LINES: usize = 512;
/// How much is buffered of an answer that its client does not take. hyper's own measure is six times as much.
const BUFFER: usize = 64 * 1024;
/// Room behind a head as long as may be.
const BEHIND_HEAD: usize = 8 * 1024;

/// A worker's idle connections, by server.
#[derive(Debug, Default)]
pub struct Pools(Rc<RefCell<ByServer>>);

/// By where the server lies in memory: each pool holds on to its own.
type ByServer = HashMap<*const Server, Rc<Pool>>;

#[derive(Debug)]
pub(super) struct Pool {
    server: Arc<Server>,
    idle: RefCell<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<FromClient>,
    silence: Deadline,
    /// Of an answer's head, as it was when the connection was opened.
    max_header_size: usize,
}

impl Pools {
    /// The pool of a server. It ends when the server leaves the file.
    pub(super) fn of(&self, server: &Arc<Server>) -> Rc<Pool> {
        let key = Arc::as_ptr(server);
        let mut pools = self.0.borrow_mut();
        if let Some(pool) = pools.get(&key) {
            return Rc::clone(pool);
        }
        let pool = Rc::new(Pool {
            server: Arc::clone(server),
            idle: RefCell::default(),
        });
        // A request that was waiting when its server left may still go there, but nothing is kept for others.
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

/// One connection, in use. Dropped, it is closed; [given back](Connection::give_back), it serves again.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<FromClient>,
    /// Whether it has carried a request before: then the origin may just be closing it.
    pub(super) reused: bool,
    /// Until when it must be answered. It outlives each request, as arming a timer is dear.
    pub(super) silence: Deadline,
    max_header_size: usize,
    most_idle: usize,
    pool: Weak<Pool>,
}

impl Connection {
    pub(super) fn give_back(mut self) {
        let Some(pool) = self.pool.upgrade() else {
            return;
        };
        let mut idle = pool.idle.borrow_mut();
        if idle.len() < self.most_idle && !self.sender.is_closed() {
            self.silence.stop();
            idle.push(Idle {
                sender: self.sender,
                silence: self.silence,
                max_header_size: self.max_header_size,
            });
        }
    }
}

impl Pool {
    /// The connection that was used last, which the origin is least likely to have closed.
    pub(super) fn take(self: &Rc<Self>, settings: &Origin) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        let size = settings.max_header_size;
        idle.retain(|idle| !idle.sender.is_closed() && idle.max_header_size == size);
        let ready = idle.iter().rposition(|idle| idle.sender.is_ready())?;
        let Idle {
            sender, silence, ..
        } = idle.remove(ready);
        Some(Connection {
            silence,
            reused: true,
            ..self.connection(sender, settings)
        })
    }

    pub(super) async fn connect(
        self: &Rc<Self>,
        settings: &Origin,
        dialer: &Dialer,
    ) -> Result<Connection, OriginError> {
        let limit = settings.connect_timeout;
        let server = || self.server.url().to_string();
        let connecting = async {
            let stream = dialer.open(self.server.url()).await?;
            begin(stream, settings.max_header_size).await
        };
        let sender = tokio::time::timeout(limit, connecting)
            .await
            .map_err(|_| OriginError::ConnectTimeout {
                server: server(),
                limit,
            })?
            .map_err(|source| OriginError::Connect {
                server: server(),
                source,
            })?;
        Ok(self.connection(sender, settings))
    }

    fn connection(
        self: &Rc<Self>,
        sender: SendRequest<FromClient>,
        settings: &Origin,
    ) -> Connection {
        Connection {
            sender,
            reused: false,
            silence: Deadline::default(),
            max_header_size: settings.max_header_size,
            most_idle: settings.keep_alive,
            pool: Rc::downgrade(self),
        }
    }
}

async fn begin(stream: Stream, max_header_size: usize) -> io::Result<SendRequest<FromClient>> {
    let (sender, connection) = http1::Builder::new()
        .max_headers(LINES)
        .max_header_size(max_header_size)
        // A head must fit in as a whole.
        .max_buf_size(BUFFER.max(max_header_size + BEHIND_HEAD))
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    actix_rt::spawn(async move {
        // Whoever uses the connection is told what went wrong; an idle one that the origin closes is no news.
        let _closed = connection.with_upgrades().await;
    });
    Ok(sender)
}
