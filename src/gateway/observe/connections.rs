//! Client connections: their number, their maximum, and clients that wait for a permit.
//!
//! A *permit* is the right to have one connection open. A client without a permit stays in the
//! kernel's queue: it is not accepted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use slab::Slab;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::metrics::Sharded;

/// Permits of client connections. Clones share them.
#[derive(Clone, Debug)]
pub struct ClientConnections(Arc<State>);

/// State that all clones share.
#[derive(Debug)]
struct State {
    /// One permit for each connection that may be open; none before [`ClientConnections::allow`].
    capacity: Arc<Semaphore>,
    /// Maximum number of connections.
    max: AtomicUsize,
    /// Whether the descriptors allow fewer connections than configured.
    few_descriptors: AtomicBool,
    /// Number of open connections.
    open: AtomicUsize,
    /// Number of listeners whose next client has no permit.
    blocked: AtomicUsize,
    /// Whether any listener was blocked since the last call of `take_blocked`.
    was_blocked: AtomicBool,
    /// Whether new clients wait.
    is_full: AtomicBool,
    /// Number of clients that wait in the kernel, from [`ClientConnections::note`].
    ///
    /// `UNKNOWN` if it is not known.
    waiting: AtomicUsize,
}

/// Marks an unknown number of waiting clients.
const UNKNOWN: usize = usize::MAX;

/// Open connections of the process: a table for each worker, to which only this worker writes.
static OPEN: Sharded<Mutex<Slab<Open>>> = Sharded::new();

/// A served connection. Small, because there may be very many idle ones.
struct Open {
    /// Address of the client; `None`: a socket file.
    client: Option<IpAddr>,
    /// Number of requests whose response is not complete.
    requests: u32,
}

/// Entry of a connection in the table of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenConnection(NonZeroU32);

/// Connections without a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleConnections {
    /// Number of these connections.
    pub count: u64,
    /// Address with the most of these connections, and their number.
    pub most: Option<(IpAddr, u64)>,
    /// Address with the most of all connections, and their number.
    pub most_of_all: Option<(IpAddr, u64)>,
}

/// Status of the connections, as in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionCounts {
    /// Number of open connections.
    pub open: u64,
    /// Maximum number: `max_connections`, or the number that the descriptors allow.
    pub max: u64,
    /// Whether `max` is less than `max_connections`, because the limit of descriptors is low.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub few_descriptors: bool,
    /// Whether new clients wait, because no permit is free.
    pub is_full: bool,
    /// Number of clients that wait in the kernel; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Open connections without a request; known only while `is_full`.
    #[serde(skip)]
    pub idle: Option<IdleConnections>,
}

/// Permit of one connection, until it is dropped.
pub struct ConnectionPermit {
    state: Arc<State>,
    /// Entry in the table of its worker, once the client is known.
    listed: Option<OpenConnection>,
}

/// A listener that waits for a permit.
struct BlockedListener<'s>(&'s State);

impl Default for ClientConnections {
    fn default() -> Self {
        Self(Arc::new(State {
            capacity: Arc::new(Semaphore::new(0)),
            max: AtomicUsize::new(0),
            few_descriptors: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
            was_blocked: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            waiting: AtomicUsize::new(UNKNOWN),
        }))
    }
}

impl ClientConnections {
    /// Sets the maximum to `max_connections`, or to `max_clients` if that is lower. Call it once.
    ///
    /// `max_clients`: number of clients that the limit of descriptors allows.
    pub fn allow(&self, max_connections: usize, max_clients: usize) {
        let max = max_connections.min(max_clients).min(Semaphore::MAX_PERMITS);
        let few_descriptors = max_clients < max_connections;
        self.0
            .few_descriptors
            .store(few_descriptors, Ordering::Relaxed);
        self.0.max.store(max, Ordering::Relaxed);
        self.0.capacity.add_permits(max);
    }

    /// Waits for a permit for the next client. `None` only if the process ends.
    pub async fn permit(&self) -> Option<ConnectionPermit> {
        if let Some(permit) = self.permit_now() {
            return Some(permit);
        }
        let _blocked = BlockedListener::begin(&self.0);
        let permit = Arc::clone(&self.0.capacity).acquire_owned().await;
        permit.ok().map(|permit| self.count(permit))
    }

    /// Takes a permit if one is free.
    pub fn permit_now(&self) -> Option<ConnectionPermit> {
        let permit = Arc::clone(&self.0.capacity).try_acquire_owned();
        permit.ok().map(|permit| self.count(permit))
    }

    /// Counts a connection and takes its permit out of the semaphore.
    fn count(&self, permit: OwnedSemaphorePermit) -> ConnectionPermit {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        // `ConnectionPermit` gives it back. The semaphore's guard would make each connection
        // larger.
        permit.forget();
        ConnectionPermit {
            state: Arc::clone(&self.0),
            listed: None,
        }
    }

    /// Waits until all connections have ended. Call it when no more connections are accepted.
    pub async fn all_closed(&self) {
        let max = self.0.max.load(Ordering::Relaxed);
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        // Acquiring cannot fail: the semaphore is never closed.
        let _all = self.0.capacity.acquire_many(max).await;
    }

    /// Returns whether a client has waited for a permit since the last call, or waits now.
    pub fn take_blocked(&self) -> bool {
        let was_blocked = self.0.was_blocked.swap(false, Ordering::Relaxed);
        was_blocked || self.0.blocked.load(Ordering::Relaxed) > 0
    }

    /// Records whether new clients wait, and the number of clients that wait in the kernel.
    pub fn note(&self, is_full: bool, waiting: Option<usize>) {
        let waiting = waiting.unwrap_or(UNKNOWN);
        self.0.waiting.store(waiting, Ordering::Relaxed);
        self.0.is_full.store(is_full, Ordering::Relaxed);
    }

    /// Returns the present status of the connections.
    pub fn counts(&self) -> ConnectionCounts {
        let waiting = self.0.waiting.load(Ordering::Relaxed);
        ConnectionCounts {
            open: self.0.open.load(Ordering::Relaxed) as u64,
            max: self.0.max.load(Ordering::Relaxed) as u64,
            few_descriptors: self.0.few_descriptors.load(Ordering::Relaxed),
            is_full: self.0.is_full.load(Ordering::Relaxed),
            waiting: (waiting != UNKNOWN).then_some(waiting as u64),
            idle: None,
        }
    }

    /// Returns the connections without a request. Slow, because it looks at each connection.
    pub fn idle(&self) -> IdleConnections {
        let mut busy = 0;
        // Idle connections and all connections of each address.
        let mut clients: HashMap<IpAddr, (u64, u64)> = HashMap::new();
        for table in OPEN.iter() {
            for (_, open) in lock(table).iter() {
                let is_idle = u64::from(open.requests == 0);
                busy += 1 - is_idle;
                if let Some(client) = open.client {
                    let (idle, all) = clients.entry(client).or_default();
                    (*idle, *all) = (*idle + is_idle, *all + 1);
                }
            }
        }
        // Returns the address with the highest number. `number`: of the two numbers of an address.
        let most = |number: fn((u64, u64)) -> u64| {
            let counts = clients.iter();
            let counts = counts.map(|(client, counts)| (*client, number(*counts)));
            let counts = counts.filter(|(_, count)| *count > 0);
            counts.max_by_key(|(client, count)| (*count, *client))
        };
        // A connection whose address is not known yet has no request.
        let open = self.0.open.load(Ordering::Relaxed) as u64;
        IdleConnections {
            count: open.saturating_sub(busy),
            most: most(|(idle, _)| idle),
            most_of_all: most(|(_, all)| all),
        }
    }
}

impl ConnectionPermit {
    /// Records the client of the connection. Call it once, on the worker that serves it.
    pub fn list(&mut self, client: Option<IpAddr>) -> Option<OpenConnection> {
        let key = here().insert(Open {
            client,
            requests: 0,
        });
        // One more than the index, because a number that is never 0 makes an `Option` no larger.
        let number = u32::try_from(key + 1).ok().and_then(NonZeroU32::new);
        self.listed = number.map(OpenConnection);
        self.listed
    }
}

impl OpenConnection {
    /// Counts a request of the connection. Only its worker may call this.
    pub fn request_began(self) {
        self.change(|requests| requests.saturating_add(1));
    }

    /// Counts the end of a request.
    pub fn request_ended(self) {
        // A request may outlive its connection.
        self.change(|requests| requests.saturating_sub(1));
    }

    /// Changes the number of requests of the connection.
    fn change(self, change: impl FnOnce(u32) -> u32) {
        if let Some(open) = here().get_mut(self.key()) {
            open.requests = change(open.requests);
        }
    }

    /// Returns the index of the entry in the table of its worker.
    fn key(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Returns the connections of this worker.
fn here() -> MutexGuard<'static, Slab<Open>> {
    lock(OPEN.here())
}

/// Locks the connections of one worker.
fn lock(table: &Mutex<Slab<Open>>) -> MutexGuard<'_, Slab<Open>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        if let Some(listed) = self.listed {
            here().try_remove(listed.key());
        }
        self.state.open.fetch_sub(1, Ordering::Relaxed);
        self.state.capacity.add_permits(1);
    }
}

impl<'s> BlockedListener<'s> {
    /// Records that a listener begins to wait.
    fn begin(state: &'s State) -> Self {
        state.blocked.fetch_add(1, Ordering::Relaxed);
        state.was_blocked.store(true, Ordering::Relaxed);
        Self(state)
    }
}

impl Drop for BlockedListener<'_> {
    fn drop(&mut self) {
        // The listener has waited until now.
        self.0.was_blocked.store(true, Ordering::Relaxed);
        self.0.blocked.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_client_without_a_permit_waits_until_one_is_free() {
        let connections = ClientConnections::default();
        connections.allow(2, 10);
        let permit = || connections.permit().now_or_never().flatten();
        let (first, second) = (permit().unwrap(), permit().unwrap());
        assert!(!connections.take_blocked(), "nobody waits");
        let third = connections.permit();
        let mut third = std::pin::pin!(third);
        assert!(third.as_mut().now_or_never().is_none());
        assert!(connections.take_blocked() && connections.take_blocked());
        let counts = connections.counts();
        assert_eq!((counts.open, counts.max), (2, 2));
        drop(first);
        let third = third.now_or_never().flatten().unwrap();
        assert!(connections.take_blocked(), "one waited in between");
        assert!(!connections.take_blocked());
        drop((second, third));
        assert_eq!(connections.counts().open, 0);
        assert!(connections.all_closed().now_or_never().is_some());
    }

    #[test]
    fn idle_connections_are_known_by_the_address_with_the_most() {
        let connections = ClientConnections::default();
        connections.allow(5, 10);
        let client = |last| IpAddr::from([192, 0, 2, last]);
        let mut open = Vec::new();
        for last in [1, 2, 2, 2] {
            let mut permit = connections.permit_now().unwrap();
            let listed = permit.list(Some(client(last))).unwrap();
            open.push((permit, listed));
        }
        // The client of this connection is not known yet.
        let _unlisted = connections.permit_now().unwrap();
        let idle = |count, most| IdleConnections {
            count,
            most: Some(most),
            most_of_all: Some((client(2), 3)),
        };
        assert_eq!(connections.idle(), idle(5, (client(2), 3)));
        open[1].1.request_began();
        open[1].1.request_began();
        open[1].1.request_ended();
        assert_eq!(connections.idle(), idle(4, (client(2), 2)));
        open[1].1.request_ended();
        assert_eq!(connections.idle(), idle(5, (client(2), 3)));
        open.truncate(1);
        let one = Some((client(1), 1));
        let (idle, all) = (connections.idle().most, connections.idle().most_of_all);
        assert_eq!((connections.idle().count, idle, all), (2, one, one));
    }

    #[test]
    fn a_connection_takes_little_memory() {
        assert_eq!(size_of::<Open>(), 24);
        assert_eq!(size_of::<ConnectionPermit>(), 16);
    }

    #[test]
    fn fewer_descriptors_than_max_connections_are_known_as_the_reason() {
        for (max_clients, max, few_descriptors) in [(10, 2, false), (2, 2, false), (1, 1, true)] {
            let connections = ClientConnections::default();
            connections.allow(2, max_clients);
            let counts = connections.counts();
            assert_eq!((counts.max, counts.few_descriptors), (max, few_descriptors));
        }
    }
}
