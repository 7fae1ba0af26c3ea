//! Sweep: once a second, parks idle actors and forgets drained keys.
//!
//! To *park* an actor is to end it and to keep only the bucket of its key. A *quiet* actor has no
//! waiters, no requests in flight and no pending messages. A bucket has *drained* when its level is
//! zero again. `eviction` makes room in a full zone.

use std::time::Duration;

use limit::{Account, Moment};

use super::keys::State;
use super::{Phase, ZoneSupervisor};

/// Idle time after which an actor is parked: only its bucket is kept.
const PARK_AFTER: Duration = Duration::from_secs(2);
/// Number of actors above which the longest idle ones are parked whenever another one starts.
///
/// An actor takes about 1.5 KB; to start one costs less than a microsecond.
const MANY_ACTORS: usize = 4_000;
/// Number of actors that are examined whenever a key needs room or an actor starts.
///
/// Two, because one of them may have waiters. With only one, the search could fall behind the new
/// actors.
pub(super) const ACTORS_PER_CALL: usize = 2;
/// Interval of the search for keys to park and to forget.
pub(super) const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before the next sweep if there was more work than one sweep does.
const RESWEEP_PAUSE: Duration = Duration::from_millis(5);
/// Upper bound of the keys that one sweep parks, and of the keys that it examines to forget.
///
/// Bounds the time that a sweep takes on the worker. A zone with slow rates may have more old keys
/// than this that have not drained; `max_keys` bounds them.
pub(super) const MAX_AT_ONCE: usize = 1_000;

impl ZoneSupervisor {
    /// Parks actors that are idle for [`PARK_AFTER`]. Returns whether none is left to park.
    fn park_idle(&mut self, now: Moment) -> bool {
        let count = self.keys.active().min(MAX_AT_ONCE);
        for _ in 0..count {
            let oldest = self.keys.oldest_active();
            if oldest.is_none_or(|index| now.since(self.keys[index].used) < PARK_AFTER) {
                return true;
            }
            self.park_oldest(now);
        }
        count < MAX_AT_ONCE
    }

    /// Parks the longest idle actors if there are more than [`MANY_ACTORS`].
    ///
    /// Otherwise many new keys would leave many idle actors.
    pub(super) fn park_some_of_many(&mut self, now: Moment) {
        for _ in 0..ACTORS_PER_CALL {
            if self.keys.active() > MANY_ACTORS {
                self.park_oldest(now);
            }
        }
    }

    /// Parks the least recently used actor. An actor with waiters counts as used now instead.
    fn park_oldest(&mut self, now: Moment) {
        let Some(index) = self.keys.oldest_active() else {
            return;
        };
        let Some(active) = self.keys[index].active() else {
            return;
        };
        if !active.snapshot.is_quiet() {
            return self.keys.touch(index, now);
        }
        let account = Account::Bucket(active.snapshot.bucket.get());
        if let State::Active(idle) = self.keys.replace(index, State::Parked(account)) {
            idle.end();
        }
    }

    /// Forgets drained keys that were idle for `idle_timeout`. Returns whether none is left.
    fn forget_drained(&mut self, now: Moment) -> bool {
        let (rate, idle_timeout) = (self.tuning.rate, self.tuning.zone.idle_timeout);
        let rate_of = |index| {
            if self.rates.are_all_the_same() {
                rate
            } else {
                self.rates.charged_rate(&self.keys.name(index))
            }
        };
        let first_keys = self.keys.parked_orders().into_iter();
        let idle = first_keys.flat_map(|first| {
            let by_use = self.keys.from(first);
            by_use.take_while(|(_, known)| now.since(known.used) >= idle_timeout)
        });
        let account_now = self.account_time(now);
        let drained = idle.take(MAX_AT_ONCE).filter(|(index, known)| {
            let account = known.parked();
            account.is_some_and(|account| account.drained_at(rate_of(*index)) <= account_now)
        });
        let mut drained: Vec<u32> = drained.map(|(index, _)| index).collect();
        // From the back, because the last key moves into each entry that becomes free.
        drained.sort_unstable();
        for index in drained.iter().rev() {
            self.remove(*index);
        }
        self.shard.metrics.evicted_idle.add(drained.len() as u64);
        drained.len() < MAX_AT_ONCE
    }

    /// Parks, forgets and evicts keys as needed. Returns whether the supervisor should end.
    pub(super) fn sweep(&mut self) -> bool {
        let now = self.shard.pacer.now();
        let all_parked = self.park_idle(now);
        let all_forgotten = self.forget_drained(now) && self.shrink();
        self.shard.arrivals.borrow_mut().forget_old(now);
        self.show_keys();
        self.shard.heavy.borrow_mut().hitters.forget_old(now);
        let is_over = self.phase == Phase::Retiring && self.is_quiet();
        if is_over {
            self.release_leases();
            self.end_all();
        }
        let pause = if all_parked && all_forgotten {
            SWEEP_INTERVAL
        } else {
            RESWEEP_PAUSE
        };
        self.alarm.set(Some(now + pause));
        is_over
    }

    /// Returns whether no key has waiters, requests in flight or pending messages.
    fn is_quiet(&self) -> bool {
        let mut active = self.keys.each_active();
        self.joins_at_store == 0 && active.all(|active| active.snapshot.is_quiet())
    }

    /// Ends all actors and forgets all keys.
    pub(super) fn end_all(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        self.rates.forget_all();
        keys.into_active().for_each(|active| active.end());
        self.show_keys();
    }

    /// Updates the gauges of the number of keys.
    fn show_keys(&mut self) {
        let (active, parked) = (self.keys.active(), self.keys.parked());
        let metrics = &self.shard.metrics;
        let (shown_active, shown_parked) = self.shown_keys;
        metrics.keys_active.change(shown_active, active);
        metrics.keys_parked.change(shown_parked, parked);
        self.shown_keys = (active, parked);
    }
}
