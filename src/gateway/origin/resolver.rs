//! Lookup of a server's name by the operating system.
//!
//! `dns` calls it, and keeps the results.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::{fs, thread};

use tokio::sync::oneshot;

/// Lookup of the addresses of a name.
pub(super) trait Resolve: Send + Sync + 'static {
    /// Returns the addresses of `name`, best first.
    fn resolve(&self, name: String) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// Resolver of the operating system (getaddrinfo), with its hosts file and its DNS servers.
#[derive(Debug, Default)]
pub(super) struct System;

impl Resolve for System {
    /// Runs each lookup on a new thread, not on a runtime's pool.
    ///
    /// A runtime that stops would wait for its pool, and one slow DNS server would delay all other
    /// work of the pool.
    async fn resolve(&self, name: String) -> io::Result<Vec<SocketAddr>> {
        let (sender, receiver) = oneshot::channel();
        thread::Builder::new()
            .name("resolver".to_owned())
            .spawn(move || {
                let found = (&*name, 0).to_socket_addrs().map(Iterator::collect);
                let found = found.map_err(with_resolvers);
                // Fails if the requesting worker has ended: no task waits for the result then.
                let _unsent = sender.send(found);
            })?;
        receiver.await.map_err(io::Error::other)?
    }
}

/// Maximum number of servers that the C library uses (`MAXNS` in resolv.h).
const MAX_RESOLVERS: usize = 3;

/// Adds the DNS servers of the system to the error of a lookup, if its file names any.
fn with_resolvers(error: io::Error) -> io::Error {
    let file = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let text = match &*resolvers(&file) {
        [] => return error,
        [only] => format!("{error} (resolver {only})"),
        several => format!("{error} (resolvers {})", several.join(", ")),
    };
    io::Error::new(error.kind(), text)
}

/// Returns the addresses of the DNS servers in the text of a `resolv.conf`.
fn resolvers(file: &str) -> Vec<&str> {
    let named = file.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        words.next().filter(|word| *word == "nameserver")?;
        words.next()
    });
    named.take(MAX_RESOLVERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolvers_of_a_file_are_read_without_comments_and_options() {
        let file = "# nameserver 1.1.1.1\nnameserver 10.0.0.53\nsearch nameserver\n\
                    nameserver\t::1 # a comment\nnameserver\noptions ndots:5\n";
        assert_eq!(resolvers(file), ["10.0.0.53", "::1"]);
        assert_eq!(resolvers(&"nameserver 10.0.0.1\n".repeat(5)).len(), 3);
        assert_eq!(resolvers(""), Vec::<&str>::new());
    }
}
