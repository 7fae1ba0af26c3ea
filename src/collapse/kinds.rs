//! Who leads, who follows, and what is kept: the requests of each kind, without a clock.
//!
//! Requests of one kind ask for the same thing. The first one leads: it goes to the origin. Those
//! that come until its answer is complete follow. If the answer may not be shared, they go on by
//! themselves in the order in which they came, each as soon as the one before it has joined the
//! queue of the origin.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use lru::LruCache;

use super::followers::Followers;
use super::terms::Windows;
use crate::limit::Moment;

/// How long requests of a kind go on by themselves after an answer that may not be shared.
pub const UNSHAREABLE_FOR: Duration = Duration::from_secs(10);

/// How long a stale answer serves, after the origin failed, before it is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How many leaders in a row may fail before the others go on by themselves.
const MAX_FAILURES: u8 = 2;

/// The bytes that tell one kind from all others.
pub type KindKey = Arc<[u8]>;

/// What an entry takes beside the bytes of its key and its answer.
const ENTRY: usize = 160;

/// Names the request that leads, and what it leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlightId {
    pub(super) key: KindKey,
    number: u64,
}

/// What a request of a kind does.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup<A> {
    /// It gets this answer.
    Kept(A),
    /// It gets this answer, which is stale. With a flight, the answer is fetched anew behind it.
    Stale(A, Option<FlightId>),
    /// It waits for another one. The number names it among those that follow.
    Follow(KindKey, u64),
    /// It goes to the origin, and others wait for it.
    Lead(FlightId),
    /// It goes to the origin for itself.
    Alone,
}

/// What becomes of those who followed a leader that failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed<A, W> {
    /// They get this stale answer, and so does the leader.
    Stale(A, Vec<W>),
    /// The first of them that may lead leads now.
    Next(W, FlightId),
    /// They go on by themselves: see [`Kinds::release`].
    Alone,
    /// Nobody followed.
    Over,
}

/// A request that leads, and those that follow it.
#[derive(Debug)]
struct Flight<W, S> {
    /// The key under which this stands.
    key: KindKey,
    number: u64,
    state: S,
    followers: Followers<W>,
    failures: u8,
}

#[derive(Debug)]
enum Entry<A> {
    Kept {
        answer: A,
        /// After the origin failed: when it may be asked again.
        retry_at: Option<Moment>,
        /// When it is good for nothing any more.
        until: Moment,
    },
    Unshareable {
        until: Moment,
    },
}

/// All kinds that are asked for now, or have an answer. `A`: an answer; `W`: one that waits; `S`:
/// what a leader and its followers share.
#[derive(Debug)]
pub struct Kinds<A, W, S> {
    flights: HashMap<KindKey, Flight<W, S>, RandomState>,
    entries: LruCache<KindKey, Entry<A>, RandomState>,
    next: u64,
    /// What the entries take beside their answers.
    bytes: usize,
    /// How many entries hold an answer.
    answers: usize,
}

impl<A, W, S> Default for Kinds<A, W, S> {
    fn default() -> Self {
        Self {
            flights: HashMap::default(),
            entries: LruCache::unbounded_with_hasher(RandomState::default()),
            next: 0,
            bytes: 0,
            answers: 0,
        }
    }
}

impl<A: Clone, W, S: Clone + Default> Kinds<A, W, S> {
    /// A request of a kind comes. `wait` makes its waiter if it has to follow.
    ///
    /// `may_lead`: whether its answer could be that of others. `windows`: until when an answer
    /// serves it.
    pub fn ask(
        &mut self,
        key: &[u8],
        now: Moment,
        may_lead: bool,
        windows: impl Fn(&A) -> Windows,
        wait: impl FnOnce(&S) -> W,
    ) -> Lookup<A> {
        match self.entries.get_mut(key) {
            // Those that came before may still go on one behind the other.
            Some(Entry::Unshareable { until })
                if now < *until && !self.flights.contains_key(key) =>
            {
                return Lookup::Alone;
            }
            Some(Entry::Kept {
                answer, retry_at, ..
            }) => {
                let windows = windows(answer);
                if now < windows.fresh {
                    return Lookup::Kept(answer.clone());
                }
                let is_failing = retry_at.is_some() && now < windows.error;
                if now < windows.revalidate || is_failing {
                    let answer = answer.clone();
                    let is_due = retry_at.is_none_or(|at| now >= at);
                    let fetches = is_due && !self.flights.contains_key(key);
                    return Lookup::Stale(answer, fetches.then(|| self.begin(key)));
                }
            }
            Some(Entry::Unshareable { .. }) | None => {}
        }
        if let Some(flight) = self.flights.get_mut(key) {
            self.next += 1;
            let waiter = wait(&flight.state);
            flight.followers.push(self.next, waiter, may_lead);
            return Lookup::Follow(Arc::clone(&flight.key), self.next);
        }
        if may_lead {
            Lookup::Lead(self.begin(key))
        } else {
            Lookup::Alone
        }
    }

    fn begin(&mut self, key: &[u8]) -> FlightId {
        self.next += 1;
        let key = KindKey::from(key);
        let flight = Flight {
            key: Arc::clone(&key),
            number: self.next,
            state: S::default(),
            followers: Followers::default(),
            failures: 0,
        };
        self.flights.insert(Arc::clone(&key), flight);
        FlightId {
            key,
            number: self.next,
        }
    }

    fn flight(&mut self, id: &FlightId) -> Option<&mut Flight<W, S>> {
        let flight = self.flights.get_mut(&id.key);
        flight.filter(|flight| flight.number == id.number)
    }

    /// What a leader and its followers share.
    pub fn state(&mut self, id: &FlightId) -> Option<S> {
        self.flight(id).map(|flight| flight.state.clone())
    }

    /// Whether others wait for this leader.
    pub fn is_followed(&mut self, id: &FlightId) -> bool {
        self.flight(id)
            .is_some_and(|flight| !flight.followers.is_empty())
    }

    /// The answer is complete. Returns those that get it, in the order in which they came.
    ///
    /// It is kept if it serves others later.
    pub fn complete(&mut self, id: &FlightId, answer: A, windows: &Windows, now: Moment) -> Vec<W> {
        if self.flight(id).is_none() {
            return Vec::new();
        }
        let flight = self.flights.remove(&id.key);
        if now < windows.end() {
            let kept = Entry::Kept {
                answer,
                retry_at: None,
                until: windows.end(),
            };
            self.put(&id.key, kept);
        } else {
            self.forget(&id.key);
        }
        flight.map_or_else(Vec::new, |flight| flight.followers.into_waiters())
    }

    /// The answer may not be shared: those that wait go on by themselves.
    ///
    /// The caller [releases](Self::release) them.
    pub fn unshareable(&mut self, id: &FlightId, now: Moment) {
        if self.flight(id).is_some() {
            let until = now + UNSHAREABLE_FOR;
            self.put(&id.key, Entry::Unshareable { until });
        }
    }

    /// Takes the next one that goes on by itself. `None`: there is none left.
    pub fn release(&mut self, id: &FlightId) -> Option<W> {
        let flight = self.flight(id)?;
        let next = flight.followers.pop_first();
        if next.is_none() {
            self.flights.remove(&id.key);
        }
        next
    }

    /// The leader failed: it got no answer, or one that says that the origin failed.
    ///
    /// `counts`: whether that is the origin's failure. If a leader has left, it is not, and `now`
    /// does not matter.
    pub fn failed(
        &mut self,
        id: &FlightId,
        counts: bool,
        windows: impl Fn(&A) -> Windows,
        now: Moment,
    ) -> Failed<A, W> {
        let Some(flight) = self.flight(id) else {
            return Failed::Over;
        };
        let failures = flight.failures + u8::from(counts);
        if counts
            && let Some(Entry::Kept {
                answer, retry_at, ..
            }) = self.entries.get_mut(&id.key)
            && now < windows(answer).error
        {
            *retry_at = Some(now + RETRY_AFTER);
            let answer = answer.clone();
            let flight = self.flights.remove(&id.key);
            let followers = flight.map(|flight| flight.followers.into_waiters());
            return Failed::Stale(answer, followers.unwrap_or_default());
        }
        let Some(flight) = self.flights.get_mut(&id.key) else {
            return Failed::Over;
        };
        if flight.followers.is_empty() {
            self.flights.remove(&id.key);
            return Failed::Over;
        }
        if failures >= MAX_FAILURES {
            self.unshareable(id, now);
            return Failed::Alone;
        }
        let Some((number, next)) = flight.followers.pop_leader() else {
            return Failed::Alone;
        };
        // Its number as a follower is that of no other leader.
        (flight.number, flight.failures) = (number, failures);
        let key = Arc::clone(&id.key);
        Failed::Next(next, FlightId { key, number })
    }

    /// One that followed leaves. Returns whether nobody follows any more.
    pub fn leave(&mut self, key: &[u8], follower: u64) -> bool {
        let Some(flight) = self.flights.get_mut(key) else {
            return false;
        };
        flight.followers.remove(follower) && flight.followers.is_empty()
    }

    /// Until when the answer serves that is forgotten next. `None`: the next entry has none.
    #[must_use]
    pub fn next_ends(&self) -> Option<Moment> {
        match self.entries.peek_lru()?.1 {
            Entry::Kept { until, .. } => Some(*until),
            Entry::Unshareable { .. } => None,
        }
    }

    /// Forgets the entry that was used least recently. `None`: there is none.
    ///
    /// Returns whether it held an answer.
    pub fn evict(&mut self) -> Option<bool> {
        let (key, entry) = self.entries.pop_lru()?;
        self.bytes -= key.len() + ENTRY;
        let is_answer = matches!(entry, Entry::Kept { .. });
        self.answers -= usize::from(is_answer);
        Some(is_answer)
    }

    /// What the entries take beside their answers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many answers are kept.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.answers
    }

    fn put(&mut self, key: &KindKey, entry: Entry<A>) {
        self.answers += usize::from(matches!(entry, Entry::Kept { .. }));
        self.forget(key);
        self.bytes += key.len() + ENTRY;
        self.entries.put(Arc::clone(key), entry);
    }

    fn forget(&mut self, key: &KindKey) {
        if let Some(before) = self.entries.pop(key) {
            self.bytes -= key.len() + ENTRY;
            self.answers -= usize::from(matches!(before, Entry::Kept { .. }));
        }
    }
}

#[cfg(test)]
mod histories;
#[cfg(test)]
mod tests;
