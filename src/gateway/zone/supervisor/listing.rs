//! Listings of a zone's keys for operators, in small steps so that no waiter leaves late.
//!
//! A step begins just before the index `end` and goes to the front of the keys. It also returns the
//! index at which the next step continues; 0 at the end.

use std::time::Duration;

use limit::{Measure, Moment, Window};

use super::keys::{KnownKey, State};
use super::{ActiveKey, ZoneSupervisor};
use crate::zone::heavy::{HeavyKey, HeavyKeys};
use crate::zone::join::Key;
use crate::zone::stats::{KeyState, ZoneStats};

/// Number of keys that one step of a listing visits. A step takes a fraction of a millisecond.
const WALK_STEP: usize = 500;

/// Index at which the first step of a walk begins. A walk runs from the last key to the first.
pub(in crate::zone) const FROM_THE_END: usize = usize::MAX;

/// Part of a zone's statistics, from one step. Only keys with waiters are visited.
pub(in crate::zone) struct StatsStep {
    /// Sums over all keys; `None` after the first step.
    pub(in crate::zone) sums: Option<ZoneStats>,
    /// States of the visited keys with waiters.
    pub(in crate::zone) waiting: Vec<KeyState>,
}

impl ZoneSupervisor {
    /// Runs a step of collecting statistics. `end` is [`FROM_THE_END`] in the first step.
    pub(in crate::zone) fn stats(&mut self, end: usize) -> (StatsStep, usize) {
        let now = self.shard.pacer.now();
        let sums = (end == FROM_THE_END).then(|| ZoneStats {
            depth: self.shard.depth.get(),
            in_flight: self.shard.in_flight.get(),
            active: self.keys.active(),
            parked: self.keys.parked(),
            ..ZoneStats::default()
        });
        let mut waiting = Vec::new();
        let next_end = self.shard.walk_waiting_keys(end, WALK_STEP, |snapshot| {
            waiting.push(snapshot.state(self.rates.charged_rate(&snapshot.key), now));
        });
        (StatsStep { sums, waiting }, next_end)
    }

    /// Runs a step of listing all keys.
    pub(in crate::zone) fn list(&mut self, end: usize) -> (Vec<KeyState>, usize) {
        let now = self.shard.pacer.now();
        let (keys, next_end) = self.keys.walk(end, WALK_STEP);
        let states = keys.map(|(key, known)| self.known_state(key, known, now));
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
            state: heavy.key.whole().and_then(|key| self.find_state(key, now)),
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

    /// Returns the present state of a key; `None` if the key is unknown.
    fn find_state(&self, key: &[u8], now: Moment) -> Option<KeyState> {
        Some(self.known_state(key, self.keys.get(key)?, now))
    }

    /// Returns the present state of a known key.
    fn known_state(&self, key: &[u8], known: &KnownKey<ActiveKey>, now: Moment) -> KeyState {
        let rate = self.rates.charged_rate(key);
        let mut state = match &known.state {
            State::Active(active) => active.snapshot.state(rate, now),
            State::Parked(account) | State::Passing(account) => KeyState {
                key: Key::from(key),
                depth: 0,
                in_flight: 0,
                elsewhere: None,
                excess: account.excess(rate, self.account_time(now)).requests(),
                oldest_wait: Duration::ZERO,
                active: false,
            },
        };
        // A key without permits here may be rejected because of permits at other gateways.
        state.elsewhere = (state.elsewhere).or_else(|| self.shard.recent_elsewhere(key, now));
        state
    }
}
