use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, ActorContext, Addr, Context, Handler, Message, StreamHandler};
use foldhash::fast::RandomState;
use lru::LruCache;

use super::census::KeyState;
use super::key::{KeyActor, answer_rejected};
use super::messages::{
    Dismiss, End, FROM_THE_END, Forget, ForgetKey, Join, Key, Leave, Probe, Refund, Rejection,
    Retire, Retune, RetuneKey, Survey, Tuning, Walk,
};
use super::published::{Published, Shard};
use super::roll::Roll;
use crate::limit::{Bucket, Excess, Moment};
use crate::metrics::{Rejected, ZoneMetrics};
use crate::pacer::{Alarm, Bell, Pacer};

/// How long an actor may be idle before only its bucket is kept.
const PARK_AFTER: Duration = Duration::from_secs(2);
/// How often the supervisor looks for keys to park and to forget.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How soon again where there was more to do than one sweep does.
const SWEEP_AGAIN: Duration = Duration::from_millis(5);
/// How many keys one sweep parks, and how many it forgets or looks at in vain, so that it never holds up the worker for
/// long. A zone of slow rates may have more old keys than this that have not drained; `max_keys` bounds them.
const SWEEP_MOST: usize = 1_000;
/// How many keys an operator's question looks at before others have their turn: a fraction of a millisecond.
const WALK_MOST: usize = 500;
/// What a client is told to wait where nothing better is known.
const RETRY_SOON: Duration = Duration::from_secs(1);

type Keys<V> = LruCache<Key, V, RandomState>;

/// Owns a zone's keys on one worker: wakes an actor for each key that is used, parks it when it is idle, forgets the
/// key when it has drained, and makes room when the zone is full.
pub(super) struct ZoneSupervisor {
    zone: String,
    tuning: Tuning,
    shard: Rc<Shard>,
    active: Keys<Active>,
    parked: Keys<Parked>,
    /// All of them, for those who list them.
    roll: Roll,
    alarm: Alarm,
    /// Heard from the start of the actor on.
    bell: Option<Bell>,
    phase: Phase,
    /// What the gauges of keys show of this supervisor's.
    shown: (usize, usize),
}

/// A key with an actor.
struct Active {
    actor: Addr<KeyActor>,
    published: Rc<Published>,
    used: Moment,
    /// Its index in the roll.
    index: u32,
}

/// A key of which only the bucket is kept.
struct Parked {
    bucket: Bucket,
    used: Moment,
    /// Its index in the roll.
    index: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The zone left the file: it ends when the last waiter has gone.
    Retiring,
    /// The gateway's time is up: nobody is accepted any more.
    Dismissed,
}

impl ZoneSupervisor {
    pub(super) fn new(
        zone: String,
        tuning: Tuning,
        metrics: Arc<ZoneMetrics>,
        pacer: Rc<Pacer>,
    ) -> Self {
        let (alarm, bell) = pacer.alarm();
        Self {
            zone,
            tuning,
            shard: Rc::new(Shard::new(pacer, metrics)),
            active: LruCache::unbounded_with_hasher(RandomState::default()),
            parked: LruCache::unbounded_with_hasher(RandomState::default()),
            roll: Roll::default(),
            alarm,
            bell: Some(bell),
            phase: Phase::Open,
            shown: (0, 0),
        }
    }

    /// Wakes an actor for `key`, from its parked bucket if there is one. `None` where the zone has no room.
    fn wake(&mut self, key: &Key, now: Moment) -> Option<&mut Active> {
        let (bucket, index) = match self.parked.pop(key) {
            Some(parked) => (parked.bucket, parked.index),
            None if self.has_room() || self.evict() => {
                (Bucket::new(), self.roll.add(Key::clone(key)))
            }
            None => return None,
        };
        let published = Rc::new(Published::new(Key::clone(key), bucket));
        let actor = KeyActor::new(
            self.tuning.rate,
            Rc::clone(&self.shard),
            Rc::clone(&published),
        );
        let active = Active {
            actor: actor.start(),
            published,
            used: now,
            index,
        };
        Some(self.active.get_or_insert_mut(Key::clone(key), || active))
    }

    fn has_room(&self) -> bool {
        self.active.len() + self.parked.len() < self.tuning.max_keys.get()
    }

    /// Forgets the least recently used key that has no waiters, as nginx does when a zone is full.
    fn evict(&mut self) -> bool {
        // Parked keys have been idle for longer than any quiet active one.
        let parked = self.parked.pop_lru().map(|(_, parked)| parked.index);
        let Some(index) = parked.or_else(|| self.evict_active()) else {
            return false;
        };
        self.strike(index);
        self.shard.metrics.evicted_lru.add(1);
        true
    }

    /// Takes a key off the roll.
    fn strike(&mut self, index: u32) {
        let Some(moved) = self.roll.remove(index) else {
            return;
        };
        if let Some(parked) = self.parked.peek_mut(moved) {
            parked.index = index;
        } else if let Some(active) = self.active.peek_mut(moved) {
            active.index = index;
        }
    }

    /// Ends the least recently used actor that nobody waits at; returns its index in the roll.
    fn evict_active(&mut self) -> Option<u32> {
        // Without a look at each: a flood of new keys on a zone full of waiters must stay cheap.
        if self.shard.busy() >= self.active.len() {
            return None;
        }
        for _ in 0..self.active.len() {
            match self.active.peek_lru() {
                Some((_, oldest)) if oldest.published.is_quiet() => {
                    let (_, evicted) = self.active.pop_lru()?;
                    let index = evicted.index;
                    evicted.end();
                    return Some(index);
                }
                Some((key, _)) => {
                    let key = Key::clone(key);
                    self.active.promote(&key);
                }
                None => break,
            }
        }
        None
    }

    /// Parks the actors that have been idle; `false` where there may be more of them than one sweep parks.
    fn park_idle(&mut self, now: Moment) -> bool {
        let most = self.active.len().min(SWEEP_MOST);
        for _ in 0..most {
            let Some((key, oldest)) = self.active.peek_lru() else {
                return true;
            };
            if now.since(oldest.used) < PARK_AFTER {
                return true;
            }
            let key = Key::clone(key);
            if !oldest.published.is_quiet() {
                // It has waiters: that is being in use.
                if let Some(waiting) = self.active.get_mut(&key) {
                    waiting.used = now;
                }
            } else if let Some(idle) = self.active.pop(&key) {
                self.parked.put(
                    key,
                    Parked {
                        bucket: idle.published.bucket.get(),
                        used: idle.used,
                        index: idle.index,
                    },
                );
                idle.end();
            }
        }
        most < SWEEP_MOST
    }

    /// Forgets the keys that have drained and have been idle for `idle_timeout`; `false` where there may be more.
    fn forget_drained(&mut self, now: Moment) -> bool {
        let Tuning {
            rate, idle_timeout, ..
        } = self.tuning;
        let idle = self
            .parked
            .iter()
            .rev()
            .take_while(|(_, parked)| now.since(parked.used) >= idle_timeout);
        let drained = idle
            .take(SWEEP_MOST)
            .filter(|(_, parked)| parked.bucket.drained_at(rate) <= now);
        let drained: Vec<Key> = drained.map(|(key, _)| Key::clone(key)).collect();
        self.shard.metrics.evicted_idle.add(drained.len() as u64);
        for key in &drained {
            if let Some(forgotten) = self.parked.pop(key) {
                self.strike(forgotten.index);
            }
        }
        drained.len() < SWEEP_MOST
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let now = self.shard.pacer.now();
        let all_parked = self.park_idle(now);
        let all_forgotten = self.forget_drained(now);
        self.show_keys();
        let mut active = self.active.iter();
        if self.phase == Phase::Retiring && active.all(|(_, active)| active.published.is_quiet()) {
            while let Some((_, idle)) = self.active.pop_lru() {
                idle.end();
            }
            self.parked.clear();
            self.roll.clear();
            self.show_keys();
            ctx.stop();
        }
        let pause = if all_parked && all_forgotten {
            SWEEP_EVERY
        } else {
            SWEEP_AGAIN
        };
        self.alarm.set(Some(now + pause));
    }

    fn show_keys(&mut self) {
        let (active, parked) = (self.active.len(), self.parked.len());
        let metrics = &self.shard.metrics;
        show_change(&metrics.keys_active, self.shown.0, active);
        show_change(&metrics.keys_parked, self.shown.1, parked);
        self.shown = (active, parked);
    }

    fn reject(join: Join, reason: Rejected) {
        let excess = Excess::default();
        answer_rejected(
            join.reply,
            Rejection {
                reason,
                excess,
                retry_after: RETRY_SOON,
            },
        );
    }
}

impl Active {
    fn tell<M>(&self, message: M)
    where
        M: Message + Send + 'static,
        M::Result: Send,
        KeyActor: Handler<M>,
        Context<KeyActor>: ToEnvelope<KeyActor, M>,
    {
        self.published.pending.set(self.published.pending.get() + 1);
        self.actor.do_send(message);
    }

    /// Ends the actor, whose bucket is as it was published.
    fn end(self) {
        self.actor.do_send(End);
    }
}

impl Actor for ZoneSupervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(bell) = self.bell.take() {
            Self::add_stream(bell, ctx);
        }
        self.alarm.set(Some(self.shard.pacer.now() + SWEEP_EVERY));
    }
}

impl StreamHandler<()> for ZoneSupervisor {
    fn handle(&mut self, (): (), ctx: &mut Context<Self>) {
        self.sweep(ctx);
    }
}

impl Handler<Join> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, join: Join, _: &mut Context<Self>) {
        if self.phase == Phase::Dismissed {
            return Self::reject(join, Rejected::Stopping);
        }
        let now = self.shard.pacer.now();
        if let Some(active) = self.active.get_mut(&join.key) {
            if active.actor.connected() {
                active.used = now;
                return active.tell(join);
            }
            // Only a panic closes an actor that was not told to end.
            tracing::error!(zone = self.zone, "a key's actor was gone; it is replaced");
            if let Some(lost) = self.active.pop(&join.key) {
                self.shard.count_waiters(&lost.published, 0);
                let parked = Parked {
                    bucket: lost.published.bucket.get(),
                    used: now,
                    index: lost.index,
                };
                self.parked.put(Key::clone(&join.key), parked);
            }
        }
        match self.wake(&Key::clone(&join.key), now) {
            Some(active) => active.tell(join),
            None => Self::reject(join, Rejected::Keys),
        }
    }
}

impl Handler<Probe> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, probe: Probe, _: &mut Context<Self>) {
        let now = self.shard.pacer.now();
        if let Some(active) = self.active.get_mut(&probe.key)
            && active.actor.connected()
        {
            active.used = now;
            return active.tell(probe);
        }
        let parked = self.parked.get(&probe.key).map(|parked| parked.bucket);
        let refusal = parked
            .unwrap_or_default()
            .refuses(self.tuning.rate, probe.limit, now);
        // Where the asker has gone there is nobody to tell.
        let _gone = probe
            .reply
            .send(refusal.map(|refusal| refusal.into_rejection(now)));
    }
}

impl Handler<Leave> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, leave: Leave, _: &mut Context<Self>) {
        // Who leaves is waiting, or was answered just before: a key that is not active has no waiters.
        if let Some(active) = self.active.peek(&leave.key) {
            active.tell(leave);
        }
    }
}

impl Handler<Refund> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, refund: Refund, _: &mut Context<Self>) {
        let now = self.shard.pacer.now();
        if let Some(active) = self.active.peek(&refund.key) {
            active.tell(refund);
        } else if self.parked.contains(&refund.key)
            && let Some(active) = self.wake(&Key::clone(&refund.key), now)
        {
            active.tell(refund);
        }
    }
}

impl Handler<Survey> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, survey: Survey, _: &mut Context<Self>) {
        let Survey {
            mut count,
            before,
            reply,
        } = survey;
        let (now, rate) = (self.shard.pacer.now(), self.tuning.rate);
        if before == FROM_THE_END {
            count.depth += self.shard.depth();
            count.active += self.active.len();
            count.parked += self.parked.len();
        }
        let before = self.shard.walk(before, WALK_MOST, |published| {
            let state = published.state(rate, now);
            count.depth_max = count.depth_max.max(state.depth);
            count.oldest_wait = count.oldest_wait.max(state.oldest_wait);
            count.top.show(state);
        });
        // Where the asker has gone there is nobody to tell.
        let _gone = reply.send((count, before));
    }
}

impl Handler<Walk> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, walk: Walk, _: &mut Context<Self>) {
        let Walk {
            mut top,
            before,
            reply,
        } = walk;
        let (now, rate) = (self.shard.pacer.now(), self.tuning.rate);
        let (keys, before) = self.roll.walk(before, WALK_MOST);
        for key in keys {
            if let Some(parked) = self.parked.peek(key) {
                top.show(KeyState {
                    key: Key::clone(key),
                    depth: 0,
                    excess: parked.bucket.excess(rate, now).requests(),
                    oldest_wait: Duration::ZERO,
                    active: false,
                });
            } else if let Some(active) = self.active.peek(key) {
                top.show(active.published.state(rate, now));
            }
        }
        // Where the asker has gone there is nobody to tell.
        let _gone = reply.send((top, before));
    }
}

impl Handler<Forget> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, forget: Forget, _: &mut Context<Self>) {
        let Forget {
            key,
            waiters,
            reply,
        } = forget;
        if let Some(active) = self.active.peek(&key) {
            return active.tell(ForgetKey { waiters, reply });
        }
        let parked = self.parked.pop(&key);
        if let Some(parked) = &parked {
            self.strike(parked.index);
        }
        // Where the asker has gone there is nobody to tell.
        let _gone = reply.send(parked.map(|_| 0));
    }
}

impl Handler<Retune> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, Retune(tuning): Retune, _: &mut Context<Self>) {
        let now = self.shard.pacer.now();
        let before = std::mem::replace(&mut self.tuning, tuning);
        if before.rate != tuning.rate {
            for (_, active) in &self.active {
                active.tell(RetuneKey(tuning.rate));
            }
            for (_, parked) in &mut self.parked {
                parked.bucket.retune(before.rate, tuning.rate, now);
            }
        }
        while self.active.len() + self.parked.len() > tuning.max_keys.get() && self.evict() {}
    }
}

impl Handler<Retire> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, _: Retire, _: &mut Context<Self>) {
        self.phase = Phase::Retiring;
    }
}

impl Handler<Dismiss> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, _: Dismiss, _: &mut Context<Self>) {
        self.phase = Phase::Dismissed;
        for (_, active) in &self.active {
            active.tell(Dismiss);
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn show_change(gauge: &metrics::Gauge, before: usize, after: usize) {
    if after > before {
        gauge.increment((after - before) as f64);
    } else if after < before {
        gauge.decrement((before - after) as f64);
    }
}
