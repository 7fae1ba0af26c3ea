//! Table of the requests at a server: client, route and phase of each.
//!
//! `in_flight` enters a request here and updates its phase.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use limit::Moment;
use slab::Slab;

use crate::observe::metrics::Sharded;

/// Table of the requests at a server.
///
/// Each worker writes to its own part, so that workers do not wait for each other.
#[derive(Debug, Default)]
pub struct InFlightTable(Sharded<Part>);

/// Requests of a few workers.
#[derive(Debug, Default)]
struct Part {
    /// Number of requests, so that choosing a server needs no lock. Written under the lock.
    count: AtomicUsize,
    requests: Mutex<Slab<AtServer>>,
}

/// Client and route of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sender {
    /// Address of the client; `None`: it has no address, as on a unix socket.
    pub client: Option<IpAddr>,
    /// Index of the route; `None`: the request has none.
    pub route: Option<usize>,
}

/// Phase of a request at a server: the event that it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The head of the response.
    #[default]
    Answer,
    /// More of the request's body, which the client has to send.
    Upload,
    /// The client has to read more of the response.
    Reader,
    /// The end of a response that has begun, or of a gRPC call or a tunnel.
    End,
}

/// Request at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtServer {
    /// Client and route of the request.
    pub sender: Sender,
    /// Event that the request waits for.
    pub phase: Phase,
    /// Start of the time in which the server could work on the request.
    ///
    /// The departure for the server, or the instant at which the client last sent more of its body.
    pub since: Moment,
}

/// Entry of a request in the table. Dropping it removes the entry.
pub(super) struct Entry<'o> {
    part: &'o Part,
    key: usize,
}

impl InFlightTable {
    /// Counts and lists a request of `sender`, which leaves for the server `now`.
    pub(super) fn enter(&self, sender: Sender, now: Moment) -> Entry<'_> {
        let part = self.0.here();
        let key = part.change(|requests| {
            requests.insert(AtServer {
                sender,
                phase: Phase::default(),
                since: now,
            })
        });
        Entry { part, key }
    }

    /// Returns the number of requests at the server.
    pub fn count(&self) -> usize {
        let counts = self.0.iter().map(|part| part.count.load(Ordering::Relaxed));
        counts.sum()
    }

    /// Returns since when the oldest request waits for the head of its response.
    pub fn oldest_unanswered(&self) -> Option<Moment> {
        let mut oldest: Option<Moment> = None;
        self.for_each(|request| {
            if request.phase == Phase::Answer {
                oldest = Some(oldest.map_or(request.since, |it| it.min(request.since)));
            }
        });
        oldest
    }

    /// Calls `visit` with each request.
    pub fn for_each(&self, mut visit: impl FnMut(&AtServer)) {
        for part in self.0.iter() {
            part.lock().iter().for_each(|(_, request)| visit(request));
        }
    }
}

impl Part {
    /// Changes the list, and updates the count.
    fn change<T>(&self, change: impl FnOnce(&mut Slab<AtServer>) -> T) -> T {
        let mut requests = self.lock();
        let changed = change(&mut requests);
        self.count.store(requests.len(), Ordering::Relaxed);
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Slab<AtServer>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry<'_> {
    /// Records the phase of the request, and since when the origin could work on it.
    pub(super) fn note(&self, phase: Phase, since: Moment) {
        if let Some(request) = self.part.lock().get_mut(self.key) {
            (request.phase, request.since) = (phase, since);
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.part.change(|requests| requests.try_remove(self.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_listed_with_their_phase_until_they_leave() {
        let table = InFlightTable::default();
        let at = Moment::from_nanos;
        let enter = |route, now| {
            let (client, route) = (None, Some(route));
            table.enter(Sender { client, route }, now)
        };
        let (first, second) = (enter(1, at(10)), enter(2, at(20)));
        first.note(Phase::Upload, at(15));
        second.note(Phase::End, at(20));
        let listed = || {
            let mut all = Vec::new();
            table.for_each(|it| all.push((it.sender.route, it.phase, it.since)));
            all
        };
        let of_second = (Some(2), Phase::End, at(20));
        assert_eq!(listed(), [(Some(1), Phase::Upload, at(15)), of_second]);
        assert_eq!(table.count(), 2);
        drop(first);
        assert_eq!((listed(), table.count()), (vec![of_second], 1));
    }
}
