//! The supervisor: owns a zone's keys on one worker.

mod actor;
mod address;
#[cfg(test)]
mod crash;
mod handover;
mod here;
mod immediate;
mod join;
mod keys;
mod listing;
mod passing;
mod rates;
mod retune;
mod sweep;
mod tuning;

use std::rc::Rc;
use std::sync::Arc;

use actix::{Addr, Context};
use limit::{Account, Bucket, Moment, Ticket};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::arrivals::{ArrivalLog, Arrivals};
use super::join::AskPlace;
use super::join::{Join, Key};
use super::key::{End, KeyActor, KeyCall};
use super::restart;
use super::snapshot::{Shard, Snapshot};
use super::store_link::StoreLink;
use crate::observe::metrics::ZoneMetrics;
use crate::time::pacer::{Alarm, Bell, Pacer};
pub(super) use actor::SupervisorActor;
pub(super) use address::SupervisorAddress;
#[cfg(test)]
pub(crate) use crash::Crash;
pub(super) use here::SupervisorId;
use keys::{Keys, Known, State};
use rates::Rates;
pub(super) use tuning::{NewKeys, Tuning};

/// Owns a zone's keys on one worker.
///
/// It wakes an actor for each key whose bucket a request does not find empty, parks the actor when
/// it is idle, forgets the key when it has drained, and evicts keys when the zone is full.
///
/// Its [`SupervisorActor`] hands it what other threads send; requests of its own worker
/// [ask it in place](here).
pub(super) struct ZoneSupervisor {
    zone: String,
    /// Takes the replies of the store. `None` before the actor starts.
    actor: Option<Addr<SupervisorActor>>,
    tuning: Tuning,
    shard: Rc<Shard>,
    keys: Keys<Active>,
    rates: Rates,
    alarm: Alarm,
    /// Taken when the actor starts.
    bell: Option<Bell>,
    phase: Phase,
    /// Number of joins that the store is deciding, in a zone without actors.
    asked: usize,
    /// This supervisor's share of the key gauges: active and parked.
    shown: (usize, usize),
}

/// A key with an actor.
struct Active {
    actor: Addr<KeyActor>,
    snapshot: Rc<Snapshot>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The zone has left the file: the supervisor ends when the last waiter has gone.
    Retiring,
    /// The next process takes over: no request is accepted any more, and those that wait leave.
    HandedOver,
    /// The gateway stops: no request is accepted any more.
    Stopping,
}

impl ZoneSupervisor {
    pub(super) fn new(
        zone: String,
        tuning: Tuning,
        metrics: Arc<ZoneMetrics>,
        pacer: Rc<Pacer>,
    ) -> Self {
        let (alarm, bell) = pacer.alarm();
        // Nothing arrived before the first start.
        let shard = shard(&zone, &tuning, pacer, metrics, Moment::default());
        Self {
            zone,
            actor: None,
            rates: Rates::new(
                tuning.rate,
                tuning.plans.clone(),
                Arc::clone(&tuning.overrides),
            ),
            tuning,
            shard,
            keys: Keys::default(),
            alarm,
            bell: Some(bell),
            phase: Phase::Open,
            asked: 0,
            shown: (0, 0),
        }
    }

    /// Wakes an actor for `key`, from its parked bucket if there is one.
    ///
    /// Returns `None` if the zone is full.
    fn wake(&mut self, key: &Key, now: Moment) -> Option<&Active> {
        let known = self.keys.find(key);
        let (bucket, used) = match known {
            Some(index) => match self.keys[index].parked() {
                Some(Account::Bucket(bucket)) => (*bucket, self.keys[index].used),
                // Keys of other algorithms have no waiters and no actor.
                _ => return None,
            },
            None if self.has_room() || self.evict() => (Bucket::new(), now),
            None => return None,
        };
        let snapshot = Rc::new(Snapshot::new(Key::clone(key), bucket));
        let rate = match known {
            Some(_) => self.rates.of(key),
            None => self.rates.wanted(key),
        };
        let paused_until = self.tuning.overrides.paused_until(key);
        let (shard, its) = (Rc::clone(&self.shard), Rc::clone(&snapshot));
        let actor = KeyActor::new(rate, used, paused_until, shard, its);
        let actor = restart::start(actor);
        let active = State::Active(Active { actor, snapshot });
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

    /// Has the actor of a key do something, if the key has one.
    fn if_active(
        &self,
        key: &[u8],
        call: impl FnOnce(&mut KeyActor, Moment, &mut Context<KeyActor>) + Send + 'static,
    ) {
        if let Some(active) = self.keys.get(key).and_then(Known::active) {
            active.send(call);
        }
    }

    /// Has the actor of a key do something, if the key is known. Wakes it if it is parked.
    fn if_known(
        &mut self,
        key: &Key,
        now: Moment,
        call: impl FnOnce(&mut KeyActor, Moment, &mut Context<KeyActor>) + Send + 'static,
    ) {
        let is_parked = |known: &Known<Active>| known.active().is_none();
        let active = if self.keys.get(key).is_some_and(is_parked) {
            self.wake(key, now)
        } else {
            self.keys.get(key).and_then(Known::active)
        };
        if let Some(active) = active {
            active.send(call);
        }
    }

    fn has_room(&self) -> bool {
        self.keys.len() < self.tuning.max_keys.get()
    }

    /// Gives back the places that were taken ahead from the store.
    fn release_leases(&self) {
        if let Some(zone) = self.shard.sharing() {
            zone.release_leases();
        }
    }
}

/// The shared state of a supervisor that has no keys yet.
///
/// What arrived before `since` is not known.
fn shard(
    zone: &str,
    tuning: &Tuning,
    pacer: Rc<Pacer>,
    metrics: Arc<ZoneMetrics>,
    since: Moment,
) -> Rc<Shard> {
    let arrivals = ArrivalLog::new(tuning.most_arrivals, since);
    let shard = Shard::new(pacer, metrics, arrivals);
    shard.share(shared(zone, tuning, &shard));
    Rc::new(shard)
}

/// How a zone with these settings is shared, if it is.
fn shared(zone: &str, tuning: &Tuning, shard: &Shard) -> Option<Rc<StoreLink>> {
    let (sharing, before) = (tuning.sharing.as_ref()?, shard.sharing());
    Some(StoreLink::new(
        zone,
        tuning.algorithm,
        sharing,
        &shard.metrics,
        &shard.pacer,
        before.as_ref(),
    ))
}

impl Active {
    /// Has the actor do something at its present moment.
    fn send(
        &self,
        call: impl FnOnce(&mut KeyActor, Moment, &mut Context<KeyActor>) + Send + 'static,
    ) {
        self.snapshot.pending.set(self.snapshot.pending.get() + 1);
        self.actor.do_send(KeyCall(call));
    }

    /// Ends the actor. Its bucket is in its snapshot.
    fn end(&self) {
        self.actor.do_send(End);
    }
}

/// What requests ask besides a turn, and what is said to the whole zone.
impl ZoneSupervisor {
    /// Answers whether a join would be accepted now. Nothing is charged.
    pub(super) fn probe(&mut self, join: Join, reply: oneshot::Sender<Option<Answer>>) {
        let now = self.shard.pacer.now();
        if self.shard.is_shared() {
            // Local state of a shared zone may be out of date and reject what the store accepts.
            let _gone = reply.send(None);
            return;
        }
        if self.would_be_one_too_many(&join.key, now) {
            let _gone = reply.send(Some(Answer::OneTooMany(join)));
            return;
        }
        self.follow_plan(&join.key, now);
        let known = self.keys.find(&join.key);
        let rate = self.rates.wanted(&join.key);
        let counted = self.counted_at(now);
        let refuses = |account: &Account| account.refuses(rate, join.limit, counted);
        let refusal = match known.map(|index| (index, &self.keys[index].state)) {
            Some((index, State::Active(active))) => {
                active.send(move |actor, now, _| actor.probe(&join, reply, now));
                return self.keys.touch(index, now);
            }
            Some((_, State::Parked(account) | State::Passing(account))) => refuses(account),
            None => refuses(&Account::new(self.tuning.algorithm)),
        };
        self.shard.answer_probe(&join, reply, refusal, counted);
    }

    /// The request that joined with this ticket has gone.
    ///
    /// It was waiting or was answered just before. A key that is not active has no waiters.
    pub(super) fn leave(&self, key: &Key, ticket: Ticket) {
        self.if_active(key, move |actor, now, _| actor.leave(ticket, now));
    }

    /// Gives a place to a request that has its turn.
    ///
    /// A key at which a request is asleep is active. If it is not, it was forgotten in a panic.
    pub(super) fn offer_place(&self, key: &Key, ask: AskPlace) {
        self.if_active(key, move |actor, now, ctx| actor.offer_place(ask, now, ctx));
    }

    /// A request that was given a place, or asks for one later, has ended, or never used it.
    ///
    /// `stays`: it still needs the place, but waits for one of another key first.
    pub(super) fn free_place(&self, key: &Key, ticket: Ticket, stays: bool) {
        // A key that is not active has no running requests.
        self.if_active(key, move |actor, _, _| actor.give_place_back(ticket, stays));
    }

    /// The arrivals of the last ten minutes.
    pub(super) fn arrivals(&self) -> Arrivals {
        let arrivals = self.shard.arrivals.borrow();
        arrivals.arrivals(self.shard.pacer.now())
    }

    /// The zone has left the file: the supervisor ends once nothing waits.
    pub(super) fn retire(&mut self) {
        self.phase = Phase::Retiring;
        self.release_leases();
    }

    /// The gateway stops: all waiters and all later requests are rejected.
    pub(super) fn reject_all(&mut self) {
        self.phase = Phase::Stopping;
        self.release_leases();
        for active in self.keys.each_active() {
            active.send(|actor, now, _| actor.stop(now));
        }
    }
}
