//! What becomes of keys that are not used: actors are parked, drained keys forgotten, and room is made in a full zone.

use std::time::Duration;

use actix::{ActorContext, Context};

use super::super::messages::{Key, Tuning};
use super::{Parked, Phase, ZoneSupervisor};
use crate::limit::{Account, Moment};

/// How long an actor may be idle before only its bucket is kept.
const PARK_AFTER: Duration = Duration::from_secs(2);
/// How often the supervisor looks for keys to park and to forget.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// How soon again where there was more to do than one sweep does.
const AGAIN: Duration = Duration::from_millis(5);
/// How many keys one sweep parks, and how many it forgets or looks at in vain, so that it never holds up the worker for
/// long. A zone of slow rates may have more old keys than this that have not drained; `max_keys` bounds them.
const MOST: usize = 1_000;

impl ZoneSupervisor {
    /// Forgets the least recently used key that has no waiters, as nginx does when a zone is full.
    pub(super) fn evict(&mut self) -> bool {
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
    pub(super) fn strike(&mut self, index: u32) {
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
        let most = self.active.len().min(MOST);
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
                        account: Account::Bucket(idle.published.bucket.get()),
                        used: idle.used,
                        index: idle.index,
                    },
                );
                idle.end();
            }
        }
        most < MOST
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
            .take(MOST)
            .filter(|(_, parked)| parked.account.drained_at(rate) <= now);
        let drained: Vec<Key> = drained.map(|(key, _)| Key::clone(key)).collect();
        self.shard.metrics.evicted_idle.add(drained.len() as u64);
        for key in &drained {
            if let Some(forgotten) = self.parked.pop(key) {
                self.strike(forgotten.index);
            }
        }
        drained.len() < MOST
    }

    pub(super) fn sweep(&mut self, ctx: &mut Context<Self>) {
        let now = self.shard.pacer.now();
        let all_parked = self.park_idle(now);
        let all_forgotten = self.forget_drained(now);
        self.show_keys();
        let mut active = self.active.iter();
        let is_quiet = self.asked == 0 && active.all(|(_, active)| active.published.is_quiet());
        if self.phase == Phase::Retiring && is_quiet {
            while let Some((_, idle)) = self.active.pop_lru() {
                idle.end();
            }
            self.parked.clear();
            self.roll.clear();
            self.show_keys();
            ctx.stop();
        }
        let pause = if all_parked && all_forgotten {
            EVERY
        } else {
            AGAIN
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
}

#[allow(clippy::cast_precision_loss)]
fn show_change(gauge: &metrics::Gauge, before: usize, after: usize) {
    if after > before {
        gauge.increment((after - before) as f64);
    } else if after < before {
        gauge.decrement((before - after) as f64);
    }
}
