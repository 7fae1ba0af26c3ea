//! Choice of a server for a request, which is then entered as a request in flight there.
//!
//! A server is *out* if it gets no requests, because requests or health checks failed there.
//! Servers with weights, limits or hashing are chosen by `group`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use config::{Balance, ServerUrl};
use limit::Moment;

use super::Origin;
use crate::origin::choice::NoServer;
use crate::origin::connection::Connection;
use crate::origin::error::OriginError;
use crate::origin::in_flight::InFlight;
use crate::origin::in_flight_table::Sender;
use crate::origin::server::Server;
use crate::origin::tied::TiedConnections;

impl Origin {
    /// Checks that requests may be sent to at least one server.
    ///
    /// # Errors
    ///
    /// Returns an error with the time until the first server may be used again.
    pub fn check_in(&self, now: Moment) -> Result<(), OriginError> {
        if self.has_server_in(now) {
            return Ok(());
        }
        Err(self.all_out(now))
    }

    /// Moves the request to a server that is not in `tried`. It keeps its permit at the origin.
    ///
    /// # Errors
    ///
    /// Returns an error if all other servers are out or full.
    pub fn move_to_untried<'o>(
        &'o self,
        tried: &[&ServerUrl],
        request: &mut InFlight<'o>,
        now: Moment,
        hash: impl FnOnce() -> Option<u64>,
    ) -> Result<(), OriginError> {
        let untried = |server: &Arc<Server>| !tried.contains(&server.url());
        let other = self.pick_if(untried, request.sender, now, hash)?;
        request.move_to(other);
        Ok(())
    }

    /// Picks the server with the fewest requests in flight, for a request of `sender`.
    ///
    /// Servers that are out are skipped. Servers with equally few requests take turns, in the order
    /// of the file.
    ///
    /// `hash` returns the hash of the request's key; `None`: it has no key. Called only for an
    /// origin that hashes keys.
    ///
    /// # Errors
    ///
    /// Returns an error if no server is left, with the time until the first server may be used
    /// again.
    pub fn pick(
        &self,
        sender: Sender,
        now: Moment,
        hash: impl FnOnce() -> Option<u64>,
    ) -> Result<InFlight<'_>, OriginError> {
        self.pick_if(|_| true, sender, now, hash)
    }

    /// Takes a connection that is tied to the client, with its server, if that server is in.
    ///
    /// `asks_kernel`: whether to check with the kernel that the connection is still open.
    pub fn pick_tied(
        &self,
        tied: &TiedConnections,
        sender: Sender,
        now: Moment,
        asks_kernel: bool,
    ) -> Option<(Connection, InFlight<'_>)> {
        let mut servers = self.servers.iter();
        let (server, connection) =
            servers.find_map(|it| Some((it, tied.take(it, now, asks_kernel)?)))?;
        let is_same = |it: &Arc<Server>| Arc::ptr_eq(it, server);
        if let Ok(picked) = self.pick_if(is_same, sender, now, || None) {
            return Some((Connection::Http1(connection), picked));
        }
        tied.keep(server, connection);
        None
    }

    /// Picks a server for which `is_eligible` is true, as [`pick`](Self::pick) does.
    fn pick_if(
        &self,
        is_eligible: impl Fn(&Arc<Server>) -> bool,
        sender: Sender,
        now: Moment,
        hash: impl FnOnce() -> Option<u64>,
    ) -> Result<InFlight<'_>, OriginError> {
        let begin = |nth: usize| InFlight::new(&self.servers[nth], &self.failures, sender, now);
        if let Some(group) = &self.group {
            let hash = match &self.settings.balance {
                Balance::Hash(_) => hash(),
                Balance::LeastInFlight => None,
            };
            let chosen = group.choose(is_eligible, hash, now, begin);
            return chosen.map_err(|reason| match reason {
                NoServer::Out => self.all_out(now),
                NoServer::Full => OriginError::AllFull {
                    origin: self.settings.name.clone(),
                },
            });
        }
        let count = self.servers.len();
        let is_alone = count == 1;
        let next = self.next.load(Ordering::Relaxed).min(count);
        // All servers, beginning with the one after the last picked one.
        let candidates = (next..count)
            .chain(0..next)
            .map(|nth| (nth, &self.servers[nth]))
            .filter(|(_, server)| is_eligible(server) && server.is_in(now));
        // Without a second server to compare with, the requests need not be counted.
        let requests = |server: &Server| {
            if is_alone {
                0
            } else {
                server.in_flight.count()
            }
        };
        let fewest = candidates.min_by_key(|(_, server)| requests(server));
        let (nth, _) = fewest.ok_or_else(|| self.all_out(now))?;
        if !is_alone {
            // Workers that pick at the same time may advance it only once. This does no harm.
            self.next.store((nth + 1) % count, Ordering::Relaxed);
        }
        Ok(begin(nth))
    }

    /// Returns the error of a request for which all servers are out.
    fn all_out(&self, now: Moment) -> OriginError {
        // A server that fails its checks can be in again after the next check at the earliest.
        let health = self.settings.health.as_ref();
        let check_interval = health.map_or(Duration::ZERO, |health| health.interval);
        let servers = self.servers.iter();
        let times_until_in = servers.map(|server| server.time_until_in(check_interval, now));
        OriginError::AllOut {
            origin: self.settings.name.clone(),
            retry_after: times_until_in.min().unwrap_or_default(),
        }
    }
}
