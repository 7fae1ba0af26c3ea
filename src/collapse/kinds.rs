//! Who leads, who follows, and what is kept: the requests of each kind, without a clock.
//!
//! Requests of one kind ask for the same thing. The first one leads: it goes to the origin. Those
//! that come until its answer is complete follow. If the answer may not be shared, they go on by
//! themselves in the order in which they came, each as soon as the one before it has joined the
//! queue of the origin.
//!
//! An answer that is too large says that of its kind. A failure, and an answer that may not be shared,
//! may concern one request alone: the next one leads, and after two in a row one request at a time
//! probes whether an answer may be shared again, while no other waits for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use lru::LruCache;

use super::asker::Asker;
use super::followers::Followers;
use super::terms::Windows;
use crate::limit::Moment;

/// How long requests of a kind go on by themselves after an answer that may not be shared, or after
/// the last probe that got none.
pub const UNSHAREABLE_FOR: Duration = Duration::from_secs(10);

/// How long a stale answer serves, after the origin failed, before it is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How many leaders in a row may have no answer for the others before these go on by themselves.
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

/// Why a leader has no answer for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It has left.
    Left,
    /// Its answer may not be shared, which may concern it alone.
    OwnAnswer,
    /// The origin failed.
    Failed,
}

/// What becomes of those who followed a leader that has no answer for them.
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
    /// The client of the leader.
    client: u64,
    followers: Followers<W>,
    failures: u8,
    /// Whether its kind is not shared: nobody waits for it.
    is_probe: bool,
}

#[derive(Debug)]
enum Entry<A> {
    Kept {
        answer: A,
        /// After the origin failed: when it may be asked again.
        retry_at: Option<Moment>,
        /// The last client that got an answer of its own since. Two of them get it as all do.
        refused: Option<u64>,
        /// When it is good for nothing any more.
        until: Moment,
    },
    /// The last answer was for the client of its leader alone, as far as is known.
    Refused { client: u64, until: Moment },
    Unshareable {
        until: Moment,
        /// Whether one request at a time probes whether the kind may be shared again.
        is_probed: bool,
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
    /// `windows`: until when an answer serves it.
    pub fn ask(
        &mut self,
        key: &[u8],
        now: Moment,
        asker: Asker,
        windows: impl Fn(&A) -> Windows,
        wait: impl FnOnce(&S) -> W,
    ) -> Lookup<A> {
        match self.entries.get_mut(key) {
            Some(Entry::Unshareable { until, is_probed }) if now < *until => {
                match self.flights.get(key).map(|flight| flight.is_probe) {
                    None if *is_probed && asker.may_lead => {
                        return Lookup::Lead(self.begin(key, asker.client, true));
                    }
                    None | Some(true) => return Lookup::Alone,
                    // Those that came before still go on one behind the other.
                    Some(false) => {}
                }
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
                    let refresh = fetches.then(|| self.begin(key, asker.client, false));
                    return Lookup::Stale(answer, refresh);
                }
            }
            Some(Entry::Unshareable { .. } | Entry::Refused { .. }) | None => {}
        }
        if let Some(flight) = self.flights.get_mut(key) {
            self.next += 1;
            let waiter = wait(&flight.state);
            flight.followers.push(self.next, waiter, asker);
            return Lookup::Follow(Arc::clone(&flight.key), self.next);
        }
        if asker.may_lead {
            Lookup::Lead(self.begin(key, asker.client, false))
        } else {
            Lookup::Alone
        }
    }

    fn begin(&mut self, key: &[u8], client: u64, is_probe: bool) -> FlightId {
        self.next += 1;
        let key = KindKey::from(key);
        let flight = Flight {
            key: Arc::clone(&key),
            number: self.next,
            state: S::default(),
            client,
            followers: Followers::default(),
            failures: 0,
            is_probe,
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
                refused: None,
                until: windows.end(),
            };
            self.put(&id.key, kept);
        } else {
            self.forget(&id.key);
        }
        flight.map_or_else(Vec::new, |flight| flight.followers.into_waiters())
    }

    /// The answer is too large: those that wait go on by themselves.
    ///
    /// The caller [releases](Self::release) them.
    pub fn unshareable(&mut self, id: &FlightId, now: Moment) {
        if self.flight(id).is_some() {
            self.mark(&id.key, now, false);
        }
    }

    fn mark(&mut self, key: &KindKey, now: Moment, is_probed: bool) {
        let until = now + UNSHAREABLE_FOR;
        self.put(key, Entry::Unshareable { until, is_probed });
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

    /// The leader got no answer for the others.
    ///
    /// If it has left, `now` does not matter.
    pub fn failed(
        &mut self,
        id: &FlightId,
        cause: Cause,
        windows: impl Fn(&A) -> Windows,
        now: Moment,
    ) -> Failed<A, W> {
        let Some(flight) = self.flight(id) else {
            return Failed::Over;
        };
        let (is_probe, client) = (flight.is_probe, flight.client);
        let (counts, is_own) = (cause != Cause::Left, cause == Cause::OwnAnswer);
        let mut failures = flight.failures + u8::from(counts);
        let mut is_kept = false;
        match counts.then(|| self.entries.get_mut(&id.key)).flatten() {
            Some(Entry::Kept {
                answer,
                retry_at,
                refused,
                ..
            }) => {
                if cause == Cause::Failed && now < windows(answer).error {
                    *retry_at = Some(now + RETRY_AFTER);
                    let answer = answer.clone();
                    let flight = self.flights.remove(&id.key);
                    let followers = flight.map(|flight| flight.followers.into_waiters());
                    return Failed::Stale(answer, followers.unwrap_or_default());
                }
                // The origin answers, so no stale answer has to stand in for it.
                *retry_at = None;
                is_kept = true;
                if is_own && refused.replace(client).is_some_and(|it| it != client) {
                    self.forget(&id.key);
                    is_kept = false;
                }
            }
            // Two clients in a row, although none waited for the other one.
            Some(Entry::Refused {
                client: before,
                until,
            }) if is_own && *before != client && now < *until => failures = MAX_FAILURES,
            _ => {}
        }
        let Some(flight) = self.flights.get_mut(&id.key) else {
            return Failed::Over;
        };
        if flight.followers.is_empty() {
            self.flights.remove(&id.key);
            let ends = is_own && !is_kept && failures >= MAX_FAILURES;
            if ends || is_probe && counts {
                self.mark(&id.key, now, true);
            } else if is_own && !is_kept {
                let until = now + UNSHAREABLE_FOR;
                self.put(&id.key, Entry::Refused { client, until });
            }
            return Failed::Over;
        }
        if failures >= MAX_FAILURES {
            self.mark(&id.key, now, true);
            return Failed::Alone;
        }
        // What one client's requests do to the origin is no evidence of those of others.
        let avoided = counts.then_some(client);
        let Some((number, next_client, next)) = flight.followers.pop_leader(avoided) else {
            return Failed::Alone;
        };
        // Its number as a follower is that of no other leader.
        (flight.number, flight.failures) = (number, failures);
        (flight.client, flight.is_probe) = (next_client, false);
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
            Entry::Unshareable { .. } | Entry::Refused { .. } => None,
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
