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
mod new_keys;
mod passing;
mod rates;
mod retune;
mod sweep;
mod tuning;

use std::rc::Rc;
use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::{Addr, Context, Handler, Message, Recipient};
use limit::{Account, Bucket, Moment};

use super::answer::{Charge, Key, Outcome};
use super::arrivals::ArrivalLog;
use super::key::KeyActor;
use super::messages::{AskPlace, End, FreePlace, Leave, Probe, Refund, RejectAll, Retire, Settle};
use super::restart;
use super::snapshot::{Shard, Snapshot};
use super::store_link::{StoreLink, StoreReply};
use crate::observe::metrics::ZoneMetrics;
use crate::time::pacer::{Alarm, Bell, Pacer};
pub(super) use actor::SupervisorActor;
pub(super) use address::SupervisorAddress;
#[cfg(test)]
pub(crate) use crash::Crash;
pub(super) use here::{Handle, SupervisorId};
pub(super) use join::JoinRequest;
use keys::{Keys, Known, State};
use rates::Rates;
pub(super) use tuning::{NewKeys, Retune, Tuning};

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
    replies: Option<Recipient<StoreReply>>,
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
            replies: None,
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

    /// Tells the actor of a key that is known, and wakes it if it is parked.
    fn tell_known<M>(&mut self, key: &Key, message: M, now: Moment)
    where
        M: Message + Send + 'static,
        M::Result: Send,
        KeyActor: Handler<M>,
        Context<KeyActor>: ToEnvelope<KeyActor, M>,
    {
        match self.keys.get(key).map(Known::active) {
            Some(Some(active)) => active.tell(message),
            Some(None) => {
                if let Some(active) = self.wake(key, now) {
                    active.tell(message);
                }
            }
            None => {}
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
    fn tell<M>(&self, message: M)
    where
        M: Message + Send + 'static,
        M::Result: Send,
        KeyActor: Handler<M>,
        Context<KeyActor>: ToEnvelope<KeyActor, M>,
    {
        self.snapshot.pending.set(self.snapshot.pending.get() + 1);
        self.actor.do_send(message);
    }

    /// Ends the actor. Its bucket is in its snapshot.
    fn end(&self) {
        self.actor.do_send(End);
    }
}

impl Handle<Probe> for ZoneSupervisor {
    fn handle(&mut self, probe: Probe) {
        let now = self.shard.pacer.now();
        if self.shard.sharing().is_some() {
            // Local state of a shared zone may be out of date and reject what the store accepts.
            let _gone = probe.reply.send(Outcome::Accepted);
            return;
        }
        if self.would_be_one_too_many(&probe.key, now) {
            let _gone = probe.reply.send(Outcome::OneTooMany(probe.limit));
            return;
        }
        self.follow_plan(&probe.key, now);
        let known = self.keys.find(&probe.key);
        let rate = self.rates.wanted(&probe.key);
        let counted = self.counted_at(now);
        let refuses = |account: &Account| account.refuses(rate, probe.limit, counted);
        let refusal = match known.map(|index| (index, &self.keys[index].state)) {
            Some((index, State::Active(active))) => {
                active.tell(probe);
                return self.keys.touch(index, now);
            }
            Some((_, State::Parked(account) | State::Passing(account))) => refuses(account),
            _ => refuses(&Account::new(self.tuning.algorithm)),
        };
        self.shard.answer_probe(probe, refusal, counted);
    }
}

impl Handle<Leave> for ZoneSupervisor {
    fn handle(&mut self, leave: Leave) {
        // A request that leaves is waiting or was answered just before. A key that is not active
        // has no waiters.
        if let Some(active) = self.keys.get(&leave.key).and_then(Known::active) {
            active.tell(leave);
        }
    }
}

impl Handle<AskPlace> for ZoneSupervisor {
    fn handle(&mut self, ask: AskPlace) {
        // A key at which a request is asleep is active. If it is not, it was forgotten in a panic.
        if let Some(active) = self.keys.get(&ask.key).and_then(Known::active) {
            active.tell(ask);
        }
    }
}

impl Handle<FreePlace> for ZoneSupervisor {
    fn handle(&mut self, free: FreePlace) {
        // A key that is not active has no running requests.
        if let Some(active) = self.keys.get(&free.key).and_then(Known::active) {
            active.tell(free);
        }
    }
}

impl Handle<Refund> for ZoneSupervisor {
    fn handle(&mut self, refund: Refund) {
        self.refund(refund.key, refund.charge, self.shard.pacer.now());
    }
}

impl Handle<Settle> for ZoneSupervisor {
    fn handle(&mut self, settle: Settle) {
        let now = self.shard.pacer.now();
        if self.phase == Phase::HandedOver && settle.cost > settle.charge.cost() {
            // The next process counts on the times of those who wait.
            return;
        }
        if !self.tuning.algorithm.queues() {
            return self.settle(&settle, now);
        }
        let key = Key::clone(&settle.key);
        if self.keys.find(&key).is_none()
            && let (Charge::Store(charge), Some(zone)) = (settle.charge, self.shard.sharing())
        {
            // The store may still know the key, and nothing waits here.
            return zone.settle(&key, charge, settle.cost);
        }
        self.tell_known(&key, settle, now);
    }
}

impl Handle<Retire> for ZoneSupervisor {
    fn handle(&mut self, _: Retire) {
        self.phase = Phase::Retiring;
        self.release_leases();
    }
}

impl Handle<RejectAll> for ZoneSupervisor {
    fn handle(&mut self, _: RejectAll) {
        self.phase = Phase::Stopping;
        self.release_leases();
        for active in self.keys.each_active() {
            active.tell(RejectAll);
        }
    }
}
