//! The supervisor: owns a zone's keys on one worker.

#[cfg(test)]
mod crash;
mod handover;
mod immediate;
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
use actix::{Actor, Addr, Context, Handler, Message, StreamHandler, Supervised};

use super::answer::{Answer, Charge, Key, Outcome, RETRY_SOON, Rejection};
use super::arrivals::ArrivalLog;
use super::key::KeyActor;
use super::messages::{End, FreePlace, Join, Leave, Probe, Refund, RejectAll, Retire, Settle};
use super::restart::{self, Restart};
use super::snapshot::{Shard, Snapshot};
use super::store_link::StoreLink;
use crate::limit::{Account, Bucket, Excess, Limit, Moment, Refusal};
use crate::observe::metrics::{ActorKind, Rejected, ZoneMetrics};
use crate::time::pacer::{Alarm, Bell, Pacer};
#[cfg(test)]
pub(crate) use crash::Crash;
use keys::{Keys, Known, State};
use rates::Rates;
pub(super) use tuning::{NewKeys, Retune, Tuning};

/// Owns a zone's keys on one worker.
///
/// It wakes an actor for each key whose bucket a request does not find empty, parks the actor when
/// it is idle, forgets the key when it has drained, and evicts keys when the zone is full.
pub(super) struct ZoneSupervisor {
    zone: String,
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

    /// Whether a request is too late: the gateway stops.
    ///
    /// After the handover, a dry run still lets requests pass.
    fn takes_no_more(&self, join: &Join) -> bool {
        match self.phase {
            Phase::Open | Phase::Retiring => false,
            Phase::HandedOver => !join.dry_run,
            Phase::Stopping => true,
        }
    }

    fn has_room(&self) -> bool {
        self.keys.len() < self.tuning.max_keys.get()
    }

    /// Returns why a known key would reject a request, if it would.
    ///
    /// Uses the bucket that the key's actor last published, unless a message is pending there that
    /// may change it. A rejection changes nothing, so a flood of rejections need not take the
    /// actor's time.
    fn refuses(&self, key: &Key, index: u32, limit: Limit, now: Moment) -> Option<Refusal> {
        // Local state of a shared zone may be out of date. In a pause, only the actor knows its
        // clock.
        let is_paused = self.tuning.overrides.paused_until(key).is_some();
        if is_paused || self.shard.sharing().is_some() {
            return None;
        }
        let rate = self.rates.of(key);
        match &self.keys[index].state {
            State::Parked(account) | State::Passing(account) => account.refuses(rate, limit, now),
            State::Active(active) if active.snapshot.pending.get() == 0 => {
                active.snapshot.bucket.get().refuses(rate, limit, now)
            }
            State::Active(_) => None,
        }
    }

    /// Gives back the places that were taken ahead from the store.
    fn release_leases(&self) {
        if let Some(zone) = self.shard.sharing() {
            zone.release_leases();
        }
    }

    fn reject(&self, join: Join, reason: Rejected, now: Moment) {
        let rejection = Rejection {
            reason,
            excess: Excess::default(),
            retry_after: RETRY_SOON,
            is_flood: false,
        };
        let (key, dry_run) = (&join.key, join.dry_run);
        self.shard.reject(key, join.reply, rejection, dry_run, now);
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

impl Actor for ZoneSupervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(bell) = self.bell.take() {
            Self::add_stream(bell, ctx);
        }
        self.alarm.set(Some(self.shard.pacer.now() + sweep::EVERY));
    }
}

impl Supervised for ZoneSupervisor {
    /// Forgets all keys, whose actors end: their waiters are answered.
    ///
    /// The settings and the phase stay. Answers of the store that are still to come stay expected.
    fn restarting(&mut self, _: &mut Self::Context) {
        let (pacer, metrics) = (
            Rc::clone(&self.shard.pacer),
            Arc::clone(&self.shard.metrics),
        );
        let (alarm, bell) = pacer.alarm();
        (self.alarm, self.bell) = (alarm, Some(bell));
        self.release_leases();
        self.end_all();
        let now = pacer.now();
        self.shard = shard(&self.zone, &self.tuning, pacer, metrics, now);
    }
}

impl Restart for ZoneSupervisor {
    const KIND: ActorKind = ActorKind::Supervisor;
}

impl StreamHandler<()> for ZoneSupervisor {
    fn handle(&mut self, (): (), ctx: &mut Context<Self>) {
        self.sweep(ctx);
    }
}

impl Handler<Join> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, join: Join, ctx: &mut Context<Self>) {
        let now = self.shard.pacer.now();
        if self.takes_no_more(&join) {
            self.shard.count_request(&join.key, now);
            return self.reject(join, Rejected::Stopping, now);
        }
        if self.is_one_too_many(&join.key, now) {
            // The caller may have gone.
            let _gone = join.reply.send(Answer::OneTooMany(join.limit));
            return;
        }
        self.shard.count_request(&join.key, now);
        self.shard.record(join.arrival(now));
        self.follow_plan(&join.key, now);
        if !self.tuning.algorithm.queues() {
            return match self.shard.sharing() {
                None => self.decide(join, now),
                Some(zone) => self.ask(&zone, join, ctx),
            };
        }
        let known = self.keys.find(&join.key);
        let Err(join) = self.pass_at_once(join, known, now) else {
            return;
        };
        if let Some(index) = known
            && let Some(refusal) = self.refuses(&join.key, index, join.limit, now)
        {
            let rejection = refusal.into_rejection(now);
            let (key, dry_run) = (&join.key, join.dry_run);
            self.shard.reject(key, join.reply, rejection, dry_run, now);
            return self.keys.touch(index, now);
        }
        if let Some(index) = known
            && let Some(active) = self.keys[index].active()
        {
            active.tell(join);
            return self.keys.touch(index, now);
        }
        match self.wake(&Key::clone(&join.key), now) {
            Some(active) => active.tell(join),
            None => self.reject(join, Rejected::Keys, now),
        }
    }
}

impl Handler<Probe> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, probe: Probe, _: &mut Context<Self>) {
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
        let refuses = |account: &Account| account.refuses(rate, probe.limit, now);
        let refusal = match known.map(|index| (index, &self.keys[index].state)) {
            Some((index, State::Active(active))) => {
                active.tell(probe);
                return self.keys.touch(index, now);
            }
            Some((_, State::Parked(account) | State::Passing(account))) => refuses(account),
            _ => refuses(&Account::new(self.tuning.algorithm)),
        };
        self.shard.answer_probe(probe, refusal, now);
    }
}

impl Handler<Leave> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, leave: Leave, _: &mut Context<Self>) {
        // A request that leaves is waiting or was answered just before. A key that is not active
        // has no waiters.
        if let Some(active) = self.keys.get(&leave.key).and_then(Known::active) {
            active.tell(leave);
        }
    }
}

impl Handler<FreePlace> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, free: FreePlace, _: &mut Context<Self>) {
        // A key that is not active has no running requests.
        if let Some(active) = self.keys.get(&free.key).and_then(Known::active) {
            active.tell(free);
        }
    }
}

impl Handler<Refund> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, refund: Refund, _: &mut Context<Self>) {
        let now = self.shard.pacer.now();
        if !self.tuning.algorithm.queues() {
            return self.take_back(&refund.key, refund.charge, now);
        }
        let key = Key::clone(&refund.key);
        self.tell_known(&key, refund, now);
    }
}

impl Handler<Settle> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, settle: Settle, _: &mut Context<Self>) {
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

impl Handler<Retire> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, _: Retire, _: &mut Context<Self>) {
        self.phase = Phase::Retiring;
        self.release_leases();
    }
}

impl Handler<RejectAll> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, _: RejectAll, _: &mut Context<Self>) {
        self.phase = Phase::Stopping;
        self.release_leases();
        for active in self.keys.each_active() {
            active.tell(RejectAll);
        }
    }
}
