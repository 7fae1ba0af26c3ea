//! Operators' commands on a zone's keys: listings, in small steps, and forgetting a key.
//!
//! The steps are small so that no waiter leaves late.

use std::time::Duration;

use limit::{Measure, Moment, Window};
use tokio::sync::oneshot;

use super::keys::{Known, State};
use super::{Active, ZoneSupervisor};
use crate::zone::heavy::{HeavyKey, HeavyKeys};
use crate::zone::join::{Key, Waiters};
use crate::zone::stats::{KeyState, ZoneStats};

/// Number of keys that one step of a listing visits. A step takes a fraction of a millisecond.
const WALK_STEP: usize = 500;

/// Index at which the first step of a walk begins. A walk runs from the last key to the first.
pub(in crate::zone) const FROM_THE_END: usize = usize::MAX;

/// Part of a zone's statistics, from one step.
pub(in crate::zone) struct StatsStep {
    /// Sums over all keys; `None` after the first step.
    pub(in crate::zone) sums: Option<ZoneStats>,
    /// States of the visited keys with waiters.
    pub(in crate::zone) waiting: Vec<KeyState>,
}

impl ZoneSupervisor {
    /// Runs a step of collecting statistics, from just before index `end` to the front.
    ///
    /// `end` is [`FROM_THE_END`] in the first step. Returns the result, and the index to continue
    /// from; 0 at the end.
    pub(in crate::zone) fn stats(&mut self, end: usize) -> (StatsStep, usize) {
        let now = self.shard.pacer.now();
        let sums = (end == FROM_THE_END).then(|| ZoneStats {
            depth: self.shard.depth.get(),
            in_flight: self.shard.running.get(),
            active: self.keys.active(),
            parked: self.keys.parked(),
            ..ZoneStats::default()
        });
        let mut waiting = Vec::new();
        let next_end = self.shard.walk(end, WALK_STEP, |snapshot| {
            waiting.push(snapshot.state(self.rates.charged_rate(&snapshot.key), now));
        });
        (StatsStep { sums, waiting }, next_end)
    }

    /// Runs a step of listing all keys, from just before index `end` to the front.
    pub(in crate::zone) fn list(&mut self, end: usize) -> (Vec<KeyState>, usize) {
        let now = self.shard.pacer.now();
        let (keys, next_end) = self.keys.walk(end, WALK_STEP);
        let states = keys.map(|(key, known)| self.state_of(key, known, now));
        (states.collect(), next_end)
    }

    /// Runs a step of the search for keys with a masked name.
    pub(in crate::zone) fn find_masked(
        &mut self,
        end: usize,
        zone: &config::Zone,
        name: &str,
    ) -> (Vec<Key>, usize) {
        let (keys, next_end) = self.keys.walk(end, WALK_STEP);
        let has_name = |key: &&[u8]| zone.masked(key).as_deref() == Some(name);
        let found = keys.map(|(key, _)| key).filter(has_name);
        (found.map(Key::from).collect(), next_end)
    }

    /// Returns the first `limit` keys of a window, ordered by a measure.
    pub(in crate::zone) fn heaviest(
        &self,
        measure: Measure,
        window: Window,
        limit: usize,
    ) -> HeavyKeys {
        let now = self.shard.pacer.now();
        let heavy = self.shard.heavy.borrow();
        let heaviest = heavy.hitters.heaviest(measure, window, limit, now);
        let keys = heaviest.keys.into_iter().map(|heavy| HeavyKey {
            state: heavy.key.whole().and_then(|key| self.state(key, now)),
            name: heavy.key,
            requests: heavy.requests,
            rejections: heavy.rejections,
            wait: heavy.wait,
        });
        HeavyKeys {
            keys: keys.collect(),
            total: heaviest.total,
            error: heaviest.error,
        }
    }

    /// Forgets the charges of a key.
    ///
    /// Sends the number of rejected waiters to `reply`; `None` if the key is unknown.
    pub(in crate::zone) fn forget(
        &mut self,
        key: &Key,
        waiters: Waiters,
        reply: oneshot::Sender<Option<usize>>,
    ) {
        let known = self.keys.find(key);
        if let Some(active) = known.and_then(|index| self.keys[index].active()) {
            return active.send(move |actor, now, _| actor.forget(waiters, reply, now));
        }
        let link = self.shard.store_link();
        if let Some(link) = &link {
            link.forget(key, None);
        }
        let parked = known.and_then(|index| self.remove(index));
        // The store may know a key that is unknown here.
        let is_known = parked.is_some() || link.is_some();
        // The caller may have been dropped.
        let _unsent = reply.send(is_known.then_some(0));
    }

    /// Returns the present state of a key, if the key is known.
    fn state(&self, key: &[u8], now: Moment) -> Option<KeyState> {
        Some(self.state_of(key, self.keys.get(key)?, now))
    }

    /// Returns the present state of a known key.
    fn state_of(&self, key: &[u8], known: &Known<Active>, now: Moment) -> KeyState {
        let mut state = match &known.state {
            State::Active(active) => active.snapshot.state(self.rates.charged_rate(key), now),
            State::Parked(account) | State::Passing(account) => KeyState {
                key: Key::from(key),
                depth: 0,
                in_flight: 0,
                elsewhere: None,
                excess: account
                    .excess(self.rates.charged_rate(key), self.counted_at(now))
                    .requests(),
                oldest_wait: Duration::ZERO,
                active: false,
            },
        };
        state.elsewhere = (state.elsewhere).or_else(|| self.shard.recent_elsewhere(key, now));
        state
    }
}
