use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;

use tokio::sync::oneshot;

/// Looks names up.
pub(super) trait Resolve: Send + Sync + 'static {
    /// The addresses of `name`, best first.
    fn resolve(&self, name: String) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// Asks as every program of the machine does: its files of hosts, then its name servers, in the
/// order that it is set to.
#[derive(Debug, Default)]
pub(super) struct System;

impl Resolve for System {
    /// Each on a thread of its own, not on a runtime's pool: a stop would wait for it there, and
    /// one slow name server would hold up whatever else the pool is for.
    async fn resolve(&self, name: String) -> io::Result<Vec<SocketAddr>> {
        let (tell, told) = oneshot::channel();
        thread::Builder::new()
            .name("resolver".to_owned())
            .spawn(move || {
                let found = (&*name, 0).to_socket_addrs().map(Iterator::collect);
                // Nobody waits any more where the worker that asked has ended.
                let _gone = tell.send(found);
            })?;
        told.await.map_err(io::Error::other)?
    }
}
