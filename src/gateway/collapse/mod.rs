//! One departure answers many: requests for the same thing share the answer of one of them.
//!
//! | module | what it is |
//! |---|---|
//! | `kinds` | who leads, who follows, and what is kept, without a clock |
//! | `terms`, `directives` | what an answer allows, as a shared cache reads it (RFC 9111) |
//! | `date` | the dates of HTTP |
//! | `answer` | a complete answer |
//! | `memory` | the bodies of answers, which slow readers can lose, and the bytes that all answers take |
//! | `present` | what one request gets of it: all, a part, or 304 |
//! | `flight`, `leader`, `follower` | a request that others wait for, and its two sides |
//! | `followers` | a request as its kind knows it, and the line of those who wait |

mod answer;
mod date;
mod directives;
mod flight;
mod follower;
mod followers;
mod kinds;
mod leader;
mod memory;
mod present;
mod terms;

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::{Collapse, client_network};
use foldhash::fast::RandomState;
use limit::Moment;
use tokio::sync::oneshot;

use crate::time::clock;
use answer::KeptAnswer;
use flight::Flight;
use followers::Asker;
use kinds::{Cause, Failed, FlightId, Kinds, Lookup};
use memory::{Memory, READERS_PART};

pub use answer::{AnswerFields, AnswerHead, SharedAnswer};
pub(crate) use date::parse_date;
pub use follower::{Followed, Follower, Release};
pub use leader::{Gathered, Leader};
pub use memory::AnswerBody;
pub use present::{Preconditions, Presented};
pub(crate) use terms::ACCEL_EXPIRES;
pub use terms::{Head, Terms, Verdict, Windows};

/// The answers of all routes, and the requests that wait for them.
#[derive(Debug)]
pub struct SharedAnswers {
    kinds: Mutex<KindTable>,
    memory: Arc<Memory>,
    /// The most bytes that answers may take.
    limit: AtomicUsize,
    /// Whether answers serve newcomers: see [`SharedAnswers::retire`].
    keeps: AtomicBool,
    /// See [`SharedAnswers::evicted`].
    evicted: AtomicU64,
    /// Makes the numbers of clients.
    clients: RandomState,
}

type KindTable = Kinds<Arc<KeptAnswer>, oneshot::Sender<Followed>, Arc<Flight>>;

/// What a request of a kind does.
#[derive(Debug)]
pub enum Share {
    /// It gets this answer.
    Kept(Arc<SharedAnswer>),
    /// It gets this stale answer. With a leader, the answer is to be fetched anew behind it.
    Stale(Arc<SharedAnswer>, Option<Leader>),
    /// It waits for another one.
    Follow(Follower),
    /// It goes to the origin, and others wait for it.
    Lead(Leader),
    /// It goes to the origin for itself.
    Alone,
}

/// What is kept now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The number of answers that serve newcomers.
    pub answers: usize,
    /// The bytes of all answers, also of those that only slow readers hold.
    pub bytes: usize,
}

impl SharedAnswers {
    /// `limit`: the most bytes that answers may take.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            kinds: Mutex::default(),
            memory: Arc::default(),
            limit: AtomicUsize::new(limit),
            keeps: AtomicBool::new(true),
            evicted: AtomicU64::new(0),
            clients: RandomState::default(),
        })
    }

    /// Changes the most bytes that answers may take.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        self.keeps.store(true, Ordering::Relaxed);
        self.forget(0);
    }

    /// Forgets all answers and keeps no new ones, because no route shares any more.
    ///
    /// Those who wait for an answer get it.
    pub fn retire(&self) {
        self.keeps.store(false, Ordering::Relaxed);
        self.forget_all();
    }

    fn forget_all(&self) {
        let mut kinds = self.lock();
        while kinds.evict().is_some() {}
    }

    /// How many answers were forgotten while they still served, or were cut off while clients read
    /// them, because others needed their memory.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// What is kept now.
    pub fn kept(&self) -> Kept {
        let kinds = self.lock();
        Kept {
            answers: kinds.answers(),
            bytes: self.memory.used() + kinds.bytes(),
        }
    }

    /// Whether a kept answer may serve at `now`, also as a stale one.
    pub fn may_serve(&self, now: Moment) -> bool {
        self.lock().may_serve(now)
    }

    /// A request of the kind that `key` names comes.
    ///
    /// `may_lead`: whether its answer could be that of others.
    pub fn ask(
        self: &Arc<Self>,
        key: &[u8],
        collapse: &Arc<Collapse>,
        client: Option<IpAddr>,
        may_lead: bool,
        now: Moment,
    ) -> Share {
        let client = self.clients.hash_one(client.map(client_network));
        let asker = Asker { client, may_lead };
        let mut waits = None;
        let mut kinds = self.lock();
        let windows = |answer: &Arc<KeptAnswer>| answer.0.windows(collapse);
        let found = kinds.ask(key, now, asker, windows, |flight| {
            let (sender, told) = oneshot::channel();
            waits = Some((told, Arc::clone(flight)));
            sender
        });
        let mut leader = |id: FlightId| {
            let flight = kinds.state(&id).unwrap_or_default();
            Leader::new(self, id, flight, collapse)
        };
        match found {
            Lookup::Kept(answer) => Share::Kept(Arc::clone(&answer.0)),
            Lookup::Stale(answer, id) => Share::Stale(Arc::clone(&answer.0), id.map(leader)),
            Lookup::Lead(id) => Share::Lead(leader(id)),
            Lookup::Follow(key, number) => match waits {
                Some((told, flight)) => {
                    drop(kinds);
                    self.abandon(&key, &flight, collapse.follow_timeout, now);
                    Share::Follow(Follower::new(self, key, number, told, flight))
                }
                None => Share::Alone,
            },
            Lookup::Alone => Share::Alone,
        }
    }

    fn complete(&self, id: &FlightId, answer: &Arc<SharedAnswer>, windows: &Windows, now: Moment) {
        let kept = Arc::new(KeptAnswer(Arc::clone(answer)));
        let followers = self.lock().complete(id, kept, windows, now);
        for follower in followers {
            // One that has left needs none.
            let _left = follower.send(Followed::Answer(Arc::clone(answer)));
        }
        if self.keeps.load(Ordering::Relaxed) {
            self.make_room(0);
        } else {
            self.forget_all();
        }
    }

    fn unshareable(self: &Arc<Self>, id: &FlightId, now: Moment) {
        self.lock().unshareable(id, now);
        self.make_room(0);
        self.release(id);
    }

    /// Lets the next follower go on by itself.
    fn release(self: &Arc<Self>, id: &FlightId) {
        let next = self.lock().release(id);
        if let Some(next) = next {
            let release = Release::new(self, id);
            // If it has left, the one behind it is next: see the drop of what is not sent.
            let _left = next.send(Followed::Alone(release));
        }
    }

    /// Returns what the leader itself gets, if a stale answer serves.
    fn failed(
        self: &Arc<Self>,
        leader: &Leader,
        cause: Cause,
        now: Moment,
    ) -> Option<Arc<SharedAnswer>> {
        let windows = |answer: &Arc<KeptAnswer>| answer.0.windows(&leader.collapse);
        let failed = self.lock().failed(&leader.id, cause, windows, now);
        // It may have to be remembered.
        self.make_room(0);
        match failed {
            Failed::Stale(kept, followers) => {
                send_stale(&kept.0, followers);
                return Some(Arc::clone(&kept.0));
            }
            Failed::Next(next, id) => {
                leader.flight.restart();
                let promoted = leader.next(id);
                // If it has left, the one behind it is next: see the drop of what is not sent.
                let _left = next.send(Followed::Lead(Box::new(promoted)));
            }
            Failed::Alone => self.release(&leader.id),
            Failed::Over => {}
        }
        None
    }

    /// Nobody waits for this flight any more if its answer had no end within `limit`.
    ///
    /// Returns whether that is so. Those who followed go on by themselves.
    fn abandon(
        self: &Arc<Self>,
        key: &[u8],
        flight: &Arc<Flight>,
        limit: Duration,
        now: Moment,
    ) -> bool {
        if !flight.is_endless(limit, now) {
            return false;
        }
        let is_it = |it: &Arc<Flight>| Arc::ptr_eq(it, flight);
        let abandoned = self.lock().abandon(key, is_it, now);
        self.make_room(0);
        if let Some(id) = &abandoned {
            flight.abandon();
            self.release(id);
        }
        flight.is_abandoned()
    }

    /// Returns the stale answer that serves while the origin cannot be reached. Those who follow get it.
    fn stand_in(&self, leader: &Leader, goes_on: bool, now: Moment) -> Option<Arc<SharedAnswer>> {
        let windows = |answer: &Arc<KeptAnswer>| answer.0.windows(&leader.collapse);
        let (kept, followers) = self.lock().stand_in(&leader.id, goes_on, windows, now)?;
        send_stale(&kept.0, followers);
        Some(Arc::clone(&kept.0))
    }

    /// Returns whether nobody follows any more.
    fn leave(&self, key: &[u8], follower: u64) -> bool {
        self.lock().leave(key, follower)
    }

    /// Whether an answer of this size fits if there is no other one.
    fn may_fit(&self, size: usize) -> bool {
        size <= self.limit.load(Ordering::Relaxed)
    }

    /// Makes room for `bytes` more that are gathered. Returns whether they fit.
    fn make_room(&self, bytes: usize) -> bool {
        let (fits, evicted) = self.forget(bytes);
        self.evicted.fetch_add(evicted, Ordering::Relaxed);
        fits
    }

    /// The same. Also returns how many answers still served, or were read.
    ///
    /// If it is too much, what has more than its part of the memory gives way: answers that are
    /// kept, or those that only readers hold.
    fn forget(&self, bytes: usize) -> (bool, u64) {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut kinds = self.lock();
        let mut evicted = 0;
        loop {
            let all = self.memory.used() + kinds.bytes() + bytes;
            if all <= limit {
                return (true, evicted);
            }
            let others = all.saturating_sub(self.memory.held());
            if others <= limit - limit / READERS_PART && self.memory.cut_off() {
                evicted += 1;
                continue;
            }
            let Some(until) = kinds.evict() else {
                return (false, evicted);
            };
            evicted += u64::from(clock::now() < until);
        }
    }

    fn lock(&self) -> MutexGuard<'_, KindTable> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send_stale(answer: &Arc<SharedAnswer>, followers: Vec<oneshot::Sender<Followed>>) {
    for follower in followers {
        // One that has left needs none.
        let _left = follower.send(Followed::Stale(Arc::clone(answer)));
    }
}

#[cfg(test)]
mod tests;
