use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;

use tokio::sync::oneshot;

/// Looks up names.
pub(super) trait Resolve: Send + Sync + 'static {
    /// Returns the addresses of `name`, best first.
    fn resolve(&self, name: String) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// Uses getaddrinfo: the hosts file and then DNS, in the order that the system is configured for.
#[derive(Debug, Default)]
pub(super) struct System;

impl Resolve for System {
    /// Runs each lookup on a new thread, not on a runtime's pool.
    ///
    /// A runtime that stops would wait for its pool, and one slow DNS server would delay all other
    /// work of the pool.
    async fn resolve(&self, name: String) -> io::Result<Vec<SocketAddr>> {
        let (tell, told) = oneshot::channel();
        thread::Builder::new()
            .name("resolver".to_owned())
            .spawn(move || {
                let found = (&*name, 0).to_socket_addrs().map(Iterator::collect);
                // If the worker that asked has ended, no task waits for the result.
                let _gone = tell.send(found);
            })?;
        told.await.map_err(io::Error::other)?
    }
}
