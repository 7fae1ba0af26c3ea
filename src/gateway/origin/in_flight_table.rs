//! The requests at a server, each with its client, its route, and what it waits for.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use limit::Moment;
use slab::Slab;

use crate::observe::metrics::Sharded;

/// The requests at a server.
///
/// Each worker writes to a part of its own, so that workers do not wait for each other.
#[derive(Debug, Default)]
pub struct InFlightTable(Sharded<Part>);

/// The requests of a few workers.
#[derive(Debug, Default)]
struct Part {
    /// The number of requests, so that a choice between servers takes no lock. Written under the lock.
    count: AtomicUsize,
    requests: Mutex<Slab<AtServer>>,
}

/// Of which client and route a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sender {
    /// `None`: a client without an address, such as one of a unix socket.
    pub client: Option<IpAddr>,
    /// The index of its route; `None`: it has none.
    pub route: Option<usize>,
}

/// What a request at a server waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The head of the answer.
    #[default]
    Answer,
    /// More of the body, which the client has to send.
    Upload,
    /// The client, which has to take more of the answer.
    Reader,
    /// The end of an answer that has begun, or of a call of gRPC or a tunnel.
    End,
}

/// A request at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtServer {
    /// Whose it is.
    pub sender: Sender,
    /// What it waits for.
    pub phase: Phase,
    /// When the request left for the server, or when the client last sent more of its body.
    pub since: Moment,
}

/// The entry of a request in the table, which ends when this is dropped.
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

    /// The number of requests at the server.
    pub(super) fn count(&self) -> usize {
        let counts = self.0.iter().map(|part| part.count.load(Ordering::Relaxed));
        counts.sum()
    }

    /// Returns since when the oldest request waits for the head of its answer.
    pub fn oldest_unanswered(&self) -> Option<Moment> {
        let mut oldest: Option<Moment> = None;
        self.each(|request| {
            if request.phase == Phase::Answer {
                oldest = Some(oldest.map_or(request.since, |it| it.min(request.since)));
            }
        });
        oldest
    }

    /// Calls `look` with each request.
    pub fn each(&self, mut look: impl FnMut(&AtServer)) {
        for part in self.0.iter() {
            part.lock().iter().for_each(|(_, request)| look(request));
        }
    }
}

impl Part {
    /// Changes the list, and counts it anew.
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
    /// Notes what the request waits for, and since when the origin could do something for it.
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
    fn requests_are_listed_with_what_they_wait_for_until_they_leave() {
        let table = InFlightTable::default();
        let at = Moment::from_nanos;
        let sender = |route| Sender {
            client: None,
            route: Some(route),
        };
        let (first, second) = (
            table.enter(sender(1), at(10)),
            table.enter(sender(2), at(20)),
        );
        first.note(Phase::Upload, at(15));
        second.note(Phase::End, at(20));
        let listed = || {
            let mut all = Vec::new();
            table.each(|it| all.push((it.sender.route, it.phase, it.since)));
            all
        };
        let of_second = (Some(2), Phase::End, at(20));
        assert_eq!(listed(), [(Some(1), Phase::Upload, at(15)), of_second]);
        assert_eq!(table.count(), 2);
        drop(first);
        assert_eq!((listed(), table.count()), (vec![of_second], 1));
    }
}
