//! Requests that ask for a turn.

use limit::{Limit, Moment, Onward, Refusal, Ticket};
use tokio::sync::oneshot;

use super::super::answer::{Answer, Key, Rejection};
use super::super::arrivals::Arrival;
use super::super::messages::Join;
use super::here::Handle;
use super::keys::State;
use super::{Phase, ZoneSupervisor};
use crate::observe::metrics::Rejected;

/// A request that asks for a turn. The fields are those of [`Join`].
#[derive(Clone, Copy, Debug)]
pub(in crate::zone) struct JoinRequest<'k> {
    pub(in crate::zone) key: &'k Key,
    pub(in crate::zone) limit: Limit,
    pub(in crate::zone) dry_run: bool,
    pub(in crate::zone) ticket: Ticket,
    pub(in crate::zone) onward: Option<Onward>,
    pub(in crate::zone) places_later: bool,
}

impl JoinRequest<'_> {
    /// Makes a message of the request. Its answer comes to the receiver.
    pub(in crate::zone) fn message(&self) -> (Join, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        let join = Join {
            key: Key::clone(self.key),
            limit: self.limit,
            dry_run: self.dry_run,
            ticket: self.ticket,
            onward: self.onward,
            places_later: self.places_later,
            reply,
        };
        (join, answer)
    }
}

impl Join {
    pub(super) fn request(&self) -> JoinRequest<'_> {
        JoinRequest {
            key: &self.key,
            limit: self.limit,
            dry_run: self.dry_run,
            ticket: self.ticket,
            onward: self.onward,
            places_later: self.places_later,
        }
    }
}

impl Handle<Join> for ZoneSupervisor {
    fn handle(&mut self, join: Join) {
        let now = self.shard.pacer.now();
        match self.decide_at_once(&join.request(), now) {
            Some(Answer::Turn(grant)) => self.answer(join, Ok(grant), now),
            Some(Answer::Rejected(rejection)) => self.answer(join, Err(rejection), now),
            Some(answer @ (Answer::OneTooMany(_) | Answer::NoPlace)) => {
                // The caller may have gone.
                let _gone = join.reply.send(answer);
            }
            None => self.pass_on(join, now),
        }
    }
}

impl ZoneSupervisor {
    /// Answers a request of this worker, or has it answered later.
    pub(super) fn join(
        &mut self,
        request: &JoinRequest<'_>,
    ) -> Result<Answer, oneshot::Receiver<Answer>> {
        let now = self.shard.pacer.now();
        if let Some(answer) = self.decide_at_once(request, now) {
            if let Answer::Rejected(rejection) = &answer {
                self.shard
                    .count_rejection(request.key, rejection, request.dry_run, now);
            }
            return Ok(answer);
        }
        let (join, answer) = request.message();
        self.pass_on(join, now);
        Err(answer)
    }

    /// Decides a request that needs neither an actor nor the store; `None` if it does.
    fn decide_at_once(&mut self, request: &JoinRequest<'_>, now: Moment) -> Option<Answer> {
        let JoinRequest {
            key,
            limit,
            dry_run,
            ..
        } = *request;
        if self.takes_no_more(dry_run) {
            self.shard.count_request(key, now);
            return Some(Answer::Rejected(Rejection::soon(Rejected::Stopping)));
        }
        if self.is_one_too_many(key, now) {
            return Some(Answer::OneTooMany(limit));
        }
        self.shard.count_request(key, now);
        self.shard.record(Arrival {
            time: now,
            key,
            limit,
            dry_run,
        });
        self.follow_plan(key, now);
        if !self.tuning.algorithm.queues() {
            let is_shared = self.shard.is_shared();
            return (!is_shared).then(|| self.decide(request, now).into());
        }
        let known = self.keys.find(key);
        if let Some(grant) = self.pass_at_once(request, known, now) {
            return Some(Answer::Turn(grant));
        }
        let index = known?;
        let refusal = self.refuses(key, index, limit, now)?;
        self.keys.touch(index, now);
        Some(Answer::Rejected(Rejection::of(refusal, now)))
    }

    /// Hands a join that is recorded to the actor of its key, or to the store.
    fn pass_on(&mut self, join: Join, now: Moment) {
        if !self.tuning.algorithm.queues()
            && let Some(zone) = self.shard.sharing()
        {
            return self.ask_store(&zone, join);
        }
        if let Some(index) = self.keys.find(&join.key)
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

    /// Whether a request is too late: the gateway stops.
    ///
    /// After the handover, a dry run still lets requests pass.
    fn takes_no_more(&self, dry_run: bool) -> bool {
        match self.phase {
            Phase::Open | Phase::Retiring => false,
            Phase::HandedOver => !dry_run,
            Phase::Stopping => true,
        }
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
        if is_paused || self.shard.is_shared() {
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

    pub(super) fn reject(&self, join: Join, reason: Rejected, now: Moment) {
        let (key, dry_run) = (&join.key, join.dry_run);
        let rejection = Rejection::soon(reason);
        self.shard.reject(key, join.reply, rejection, dry_run, now);
    }
}
