//! Supervisor: owns a zone's keys on one worker.
//!
//! - `actor`, `address`, `local`: ways to call it.
//! - `join`: decides on joins. `new_keys` bounds unknown keys, `empty_bucket` admits requests that
//!   find their bucket empty, `without_queue` decides for algorithms without a queue.
//! - `charges`: later changes of charges.
//! - `keys`: the table of keys. `sweep` parks and forgets them, `eviction` makes room.
//! - `tuning`, `retune`, `rates`: settings.
//! - `listing`: queries of operators. `handover`: saves and restores the keys.
//!
//! To *park* a key is to end its actor and to keep only its *account*: what was charged to it. In a
//! zone with queues, the account is a bucket.

mod actor;
mod address;
mod charges;
#[cfg(test)]
mod crash;
mod empty_bucket;
mod eviction;
mod handover;
mod join;
mod keys;
mod listing;
mod local;
mod new_keys;
mod rates;
mod retune;
mod sweep;
mod tuning;
mod without_queue;

use std::rc::Rc;
use std::sync::Arc;

use actix::{Addr, Context};
use limit::{Account, Bucket, Moment};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::arrivals::{ArrivalLog, Arrivals};
use super::join::{Join, Key};
use super::key::{End, KeyActor, KeyCall};
use super::restart;
use super::shard::Shard;
use super::snapshot::Snapshot;
use super::store_link::StoreLink;
use crate::observe::metrics::ZoneMetrics;
use crate::time::pacer::{Alarm, Bell, Pacer};
pub(super) use actor::SupervisorActor;
pub(super) use address::SupervisorAddress;
#[cfg(test)]
pub(crate) use crash::Crash;
use keys::{Keys, KnownKey, State};
pub(super) use listing::{FROM_THE_END, StatsStep};
pub(super) use local::SupervisorId;
use rates::Rates;
pub(super) use tuning::Tuning;

/// Owns a zone's keys on one worker.
///
/// It wakes an actor for a key when a request finds the key's bucket not empty. It parks the actor
/// when it is idle, forgets the key when it has drained, and evicts keys when the zone is full.
///
/// Its [`SupervisorActor`] passes it the messages of other threads. Requests of its own worker
/// [call it directly](local).
pub(super) struct ZoneSupervisor {
    /// Address to which replies of the store are sent. `None` before the actor starts.
    actor: Option<Addr<SupervisorActor>>,
    tuning: Tuning,
    shard: Rc<Shard>,
    keys: Keys<ActiveKey>,
    rates: Rates,
    /// Alarm of the next sweep.
    alarm: Alarm,
    /// Stream of the alarm; taken when the actor starts.
    bell: Option<Bell>,
    phase: Phase,
    /// Number of joins that the store is deciding, in a zone whose keys have no actors.
    joins_at_store: usize,
    /// Numbers of keys with and without an actor that this supervisor last added to the gauges.
    shown_keys: (usize, usize),
}

/// Actor of a key, with the state that it publishes.
struct ActiveKey {
    actor: Addr<KeyActor>,
    snapshot: Rc<Snapshot>,
}

/// Phase of a supervisor's life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The zone was removed from the file: the supervisor ends when the last waiter has left.
    Retiring,
    /// The next process takes over: no request is accepted, and current waiters still leave.
    HandedOver,
    /// The gateway stops: no request is accepted any more.
    Stopping,
}

impl ZoneSupervisor {
    pub(super) fn new(tuning: Tuning, metrics: Arc<ZoneMetrics>, pacer: Rc<Pacer>) -> Self {
        let (alarm, bell) = pacer.alarm();
        // No request arrived before the first start.
        let shard = shard(&tuning, pacer, metrics, Moment::default());
        Self {
            actor: None,
            rates: Rates::new(&tuning),
            tuning,
            shard,
            keys: Keys::default(),
            alarm,
            bell: Some(bell),
            phase: Phase::Open,
            joins_at_store: 0,
            shown_keys: (0, 0),
        }
    }

    /// Starts an actor for `key`, with its parked bucket if there is one.
    ///
    /// Returns `None` if the zone is full and no key can be evicted.
    fn wake(&mut self, key: &Key, now: Moment) -> Option<&ActiveKey> {
        let known = self.keys.find(key);
        let (bucket, used) = match known {
            Some(index) => match self.keys[index].parked() {
                Some(Account::Bucket(bucket)) => (*bucket, self.keys[index].used),
                // Keys of other algorithms have neither waiters nor actors.
                _ => return None,
            },
            None if self.has_room() || self.evict() => (Bucket::new(), now),
            None => return None,
        };
        let snapshot = Rc::new(Snapshot::new(Key::clone(key), bucket));
        let rate = match known {
            Some(_) => self.rates.charged_rate(key),
            None => self.rates.rate_by_settings(key),
        };
        let paused_until = self.tuning.overrides.paused_until(key);
        let shard = Rc::clone(&self.shard);
        let actor = KeyActor::new(rate, used, paused_until, shard, Rc::clone(&snapshot));
        let actor = restart::start(actor);
        let active = State::Active(ActiveKey { actor, snapshot });
        self.park_some_of_many(now);
        let index = if let Some(index) = known {
            self.keys.replace(index, active);
            self.keys.touch(index, now);
            index
        } else {
            self.add(key, active, now)
        };
        self.keys[index].active()
    }

    /// Calls `call` at the actor of a key, if the key has one.
    ///
    /// A key without an actor has no waiters, no sleeping requests and no requests in flight, so it
    /// needs no call. If a panic has ended its actor, their state has ended with it.
    pub(super) fn if_active(
        &self,
        key: &[u8],
        call: impl FnOnce(&mut KeyActor, Moment, &mut Context<KeyActor>) + Send + 'static,
    ) {
        if let Some(active) = self.keys.get(key).and_then(KnownKey::active) {
            active.send(call);
        }
    }

    /// Calls `call` at the actor of a key, if the key is known. Starts an actor for a parked key.
    fn if_known(
        &mut self,
        key: &Key,
        now: Moment,
        call: impl FnOnce(&mut KeyActor, Moment, &mut Context<KeyActor>) + Send + 'static,
    ) {
        let is_parked = |known: &KnownKey<ActiveKey>| known.active().is_none();
        let active = if self.keys.get(key).is_some_and(is_parked) {
            self.wake(key, now)
        } else {
            self.keys.get(key).and_then(KnownKey::active)
        };
        if let Some(active) = active {
            active.send(call);
        }
    }

    /// Returns whether the zone may remember one more key.
    fn has_room(&self) -> bool {
        self.keys.len() < self.tuning.max_keys.get()
    }

    /// Gives back the slots that were leased from the store.
    fn release_leases(&self) {
        if let Some(link) = self.shard.store_link() {
            link.release_leases();
        }
    }
}

/// Creates the shared state of a supervisor without keys.
///
/// Arrivals before `since` are unknown.
fn shard(tuning: &Tuning, pacer: Rc<Pacer>, metrics: Arc<ZoneMetrics>, since: Moment) -> Rc<Shard> {
    let arrivals = ArrivalLog::new(tuning.max_arrivals, since);
    let shard = Shard::new(pacer, metrics, arrivals);
    shard.set_store_link(store_link(tuning, &shard));
    Rc::new(shard)
}

/// Creates the link to the store, if a zone with these settings is kept in one.
fn store_link(tuning: &Tuning, shard: &Shard) -> Option<Rc<StoreLink>> {
    let sharing = tuning.sharing.as_ref()?;
    let (metrics, pacer) = (&shard.metrics, &shard.pacer);
    let previous = shard.store_link();
    let link = StoreLink::new(&tuning.zone, sharing, metrics, pacer, previous.as_ref());
    Some(link)
}

impl ActiveKey {
    /// Calls `call` at the actor, at the actor's present instant.
    fn send(
        &self,
        call: impl FnOnce(&mut KeyActor, Moment, &mut Context<KeyActor>) + Send + 'static,
    ) {
        self.snapshot.pending.set(self.snapshot.pending.get() + 1);
        self.actor.do_send(KeyCall(call));
    }

    /// Ends the actor. The snapshot keeps the bucket.
    fn end(&self) {
        self.actor.do_send(End);
    }
}

/// Probes, and calls that concern the whole zone.
impl ZoneSupervisor {
    /// Answers whether a join would be accepted now. Charges nothing.
    pub(super) fn probe(&mut self, join: Join, reply: oneshot::Sender<Option<Answer>>) {
        let now = self.shard.pacer.now();
        // The caller may have been dropped, so a reply may remain unsent.
        if self.shard.is_shared() {
            // The local state of a shared zone may be outdated and reject what the store accepts.
            let _unsent = reply.send(None);
            return;
        }
        if self.would_exceed_new_keys(&join.key, now) {
            let _unsent = reply.send(Some(Answer::UseNewKeysBucket(join)));
            return;
        }
        self.follow_plan(&join.key, now);
        let known = self.keys.find(&join.key);
        let rate = self.rates.rate_by_settings(&join.key);
        let account_now = self.account_time(now);
        let refuses = |account: &Account| account.refuses(rate, join.limit, account_now);
        let refusal = match known.map(|index| (index, &self.keys[index].state)) {
            Some((index, State::Active(active))) => {
                active.send(move |actor, now, _| actor.probe(&join, reply, now));
                return self.keys.touch(index, now);
            }
            Some((_, State::Parked(account) | State::Passing(account))) => refuses(account),
            None => refuses(&Account::new(self.tuning.zone.algorithm)),
        };
        self.shard.answer_probe(&join, reply, refusal, account_now);
    }

    /// Returns the arrivals of the last ten minutes.
    pub(super) fn arrivals(&self) -> Arrivals {
        let arrivals = self.shard.arrivals.borrow();
        arrivals.arrivals(self.shard.pacer.now())
    }

    /// Retires the zone, which was removed from the file: ends the supervisor once no request
    /// waits, is in flight or is being decided.
    pub(super) fn retire(&mut self) {
        self.phase = Phase::Retiring;
        self.release_leases();
    }

    /// Rejects all waiters and all later requests, because the gateway stops.
    pub(super) fn reject_all(&mut self) {
        self.phase = Phase::Stopping;
        self.release_leases();
        for active in self.keys.each_active() {
            active.send(|actor, now, _| actor.stop(now));
        }
    }
}
