//! Joins: the supervisor decides at once, or passes the join to the key's actor or to the store.

use limit::{Limit, Moment, Refusal};
use tokio::sync::oneshot;

use super::keys::State;
use super::{Phase, ZoneSupervisor};
use crate::observe::metrics::Rejected;
use crate::zone::answer::{Answer, Rejection};
use crate::zone::join::{Join, Key};
use crate::zone::pending::PendingJoin;

impl ZoneSupervisor {
    /// Answers a join from this worker. Returns a receiver if an actor or the store decides.
    pub(super) fn join(&mut self, join: &Join) -> Result<Answer, oneshot::Receiver<Answer>> {
        let now = self.shard.pacer.now();
        if let Some(answer) = self.decide_at_once(join, now) {
            if let Answer::Rejected(rejection) = &answer {
                let status = rejection.status(join.dry_run);
                self.shard.count_rejection(&join.key, status, now);
            }
            return Ok(answer);
        }
        let (pending, answer) = join.clone().pending();
        self.pass_on(pending, now);
        Err(answer)
    }

    /// Answers a join from another worker, or passes it on to an actor or to the store.
    pub(super) fn join_pending(&mut self, pending: PendingJoin) {
        let now = self.shard.pacer.now();
        match self.decide_at_once(&pending.join, now) {
            Some(answer) => self.answer(pending, answer, now),
            None => self.pass_on(pending, now),
        }
    }

    /// Decides on a request that needs neither an actor nor the store; `None` if it needs one.
    fn decide_at_once(&mut self, join: &Join, now: Moment) -> Option<Answer> {
        let key = &join.key;
        if self.is_too_late(join.dry_run) {
            self.shard.count_request(key, now);
            return Some(Answer::Rejected(Rejection::soon(Rejected::Stopping)));
        }
        if !self.take_new_key(key, now) {
            return Some(Answer::UseNewKeysBucket(join.clone()));
        }
        self.shard.count_request(key, now);
        self.shard.arrivals.borrow_mut().record(join.arrival(now));
        self.follow_plan(key, now);
        if !self.tuning.zone.algorithm.queues() {
            let is_shared = self.shard.is_shared();
            return (!is_shared).then(|| self.decide_without_queue(join, now).into());
        }
        let known = self.keys.find(key);
        if let Some(grant) = self.pass_at_once(join, known, now) {
            return Some(Answer::ZoneAdmission(grant));
        }
        let index = known?;
        let refusal = self.refusal(key, index, join.limit, now)?;
        self.keys.touch(index, now);
        Some(Answer::Rejected(Rejection::of(refusal, now)))
    }

    /// Passes a recorded join to the actor of its key, or to the store.
    fn pass_on(&mut self, pending: PendingJoin, now: Moment) {
        if !self.tuning.zone.algorithm.queues()
            && let Some(link) = self.shard.store_link()
        {
            return self.ask_store(&link, pending);
        }
        let key = Key::clone(&pending.join.key);
        let is_active = |index: &u32| self.keys[*index].active().is_some();
        let active = match self.keys.find(&key).filter(is_active) {
            Some(index) => {
                self.keys.touch(index, now);
                self.keys[index].active()
            }
            None => self.wake(&key, now),
        };
        if let Some(active) = active {
            active.send(move |actor, now, ctx| actor.join(pending, now, ctx));
        } else {
            let rejection = Rejection::soon(Rejected::Keys);
            self.answer(pending, Answer::Rejected(rejection), now);
        }
    }

    /// Answers a join. Refunds the charge if the receiver has been dropped.
    pub(super) fn answer(&mut self, pending: PendingJoin, answer: Answer, now: Moment) {
        let PendingJoin { join, reply } = pending;
        match answer {
            Answer::ZoneAdmission(grant) => {
                if reply.send(Answer::ZoneAdmission(grant)).is_err() {
                    self.refund(&join.key, grant.charge);
                }
            }
            Answer::Rejected(rejection) => {
                self.shard
                    .reject(&join.key, reply, rejection, join.dry_run, now);
            }
            Answer::UseNewKeysBucket(_) | Answer::NoPermit => {
                // The caller may have been dropped.
                let _unsent = reply.send(answer);
            }
        }
    }

    /// Returns whether a request is too late, because the gateway stops.
    ///
    /// After the handover, a dry run still admits requests.
    fn is_too_late(&self, dry_run: bool) -> bool {
        match self.phase {
            Phase::Open | Phase::Retiring => false,
            Phase::HandedOver => !dry_run,
            Phase::Stopping => true,
        }
    }

    /// Returns the refusal of a request by the bucket that the key's actor last published.
    ///
    /// `None` if the bucket would accept it, or if only the actor knows: a pending message may
    /// change the bucket. A rejection changes nothing, so many rejections need not take the actor's
    /// time.
    fn refusal(&self, key: &Key, index: u32, limit: Limit, now: Moment) -> Option<Refusal> {
        // The local state of a shared zone may be outdated. During a pause, only the actor knows
        // its clock.
        let is_paused = self.tuning.overrides.paused_until(key).is_some();
        if is_paused || self.shard.is_shared() {
            return None;
        }
        let rate = self.rates.charged_rate(key);
        match &self.keys[index].state {
            State::Parked(account) | State::Passing(account) => account.refuses(rate, limit, now),
            State::Active(active) if active.snapshot.pending.get() == 0 => {
                active.snapshot.bucket.get().refuses(rate, limit, now)
            }
            State::Active(_) => None,
        }
    }
}
