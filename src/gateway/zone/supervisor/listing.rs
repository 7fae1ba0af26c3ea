//! Operators' queries about a zone's keys, answered in steps that delay no drain.

use std::time::Duration;

use limit::Moment;

use super::super::answer::Key;
use super::super::heavy::{CollectHeavy, HeavyKey, HeavyKeys, HeavyName};
use super::super::messages::{
    CollectArrivals, CollectStats, FROM_THE_END, FindMasked, Forget, ForgetKey, ListKeys,
};
use super::super::stats::KeyState;
use super::here::Handle;
use super::keys::{Known, State};
use super::{Active, ZoneSupervisor};

/// How many keys one step of a query visits: a fraction of a millisecond.
const WALK_MOST: usize = 500;

impl Handle<CollectStats> for ZoneSupervisor {
    fn handle(&mut self, request: CollectStats) {
        let CollectStats {
            mut count,
            before,
            reply,
        } = request;
        let now = self.shard.pacer.now();
        if before == FROM_THE_END {
            count.depth += self.shard.depth();
            count.in_flight += self.shard.running();
            count.active += self.keys.active();
            count.parked += self.keys.parked();
        }
        let before = self.shard.walk(before, WALK_MOST, |snapshot| {
            let state = snapshot.state(self.rates.of(&snapshot.key), now);
            count.depth_max = count.depth_max.max(state.depth);
            count.oldest_wait = count.oldest_wait.max(state.oldest_wait);
            count.top.show(state);
        });
        // The caller may have gone.
        let _gone = reply.send((count, before));
    }
}

impl Handle<ListKeys> for ZoneSupervisor {
    fn handle(&mut self, request: ListKeys) {
        let ListKeys {
            mut top,
            before,
            reply,
        } = request;
        let now = self.shard.pacer.now();
        let (keys, before) = self.keys.walk(before, WALK_MOST);
        for (key, known) in keys {
            top.show(self.state_of(key, known, now));
        }
        // The caller may have gone.
        let _gone = reply.send((top, before));
    }
}

impl Handle<FindMasked> for ZoneSupervisor {
    fn handle(&mut self, request: FindMasked) {
        let FindMasked {
            zone,
            name,
            before,
            reply,
        } = request;
        let (keys, before) = self.keys.walk(before, WALK_MOST);
        let has_name = |key: &&[u8]| zone.masked(key).as_deref() == Some(&*name);
        let found = keys.map(|(key, _)| key).filter(has_name);
        // The caller may have gone.
        let _gone = reply.send((found.map(Key::from).collect(), before));
    }
}

impl Handle<CollectArrivals> for ZoneSupervisor {
    fn handle(&mut self, request: CollectArrivals) {
        // The caller may have gone.
        let _gone = request.reply.send(self.shard.arrivals());
    }
}

impl Handle<CollectHeavy> for ZoneSupervisor {
    fn handle(&mut self, request: CollectHeavy) {
        let CollectHeavy {
            measure,
            window,
            limit,
            reply,
        } = request;
        let now = self.shard.pacer.now();
        let heaviest = self.shard.heaviest(measure, window, limit, now);
        let keys = heaviest.keys.into_iter().map(|heavy| HeavyKey {
            state: self.state(&heavy.key, now),
            name: heavy.key,
            requests: heavy.requests,
            rejections: heavy.rejections,
            wait: heavy.wait,
        });
        // The caller may have gone.
        let _gone = reply.send(HeavyKeys {
            keys: keys.collect(),
            total: heaviest.total,
            error: heaviest.error,
        });
    }
}

impl ZoneSupervisor {
    /// The present state of a key, if it is known and its whole name too.
    fn state(&self, name: &HeavyName, now: Moment) -> Option<KeyState> {
        let key = name.whole()?;
        Some(self.state_of(key, self.keys.get(key)?, now))
    }

    fn state_of(&self, key: &[u8], known: &Known<Active>, now: Moment) -> KeyState {
        let mut state = match &known.state {
            State::Active(active) => active.snapshot.state(self.rates.of(key), now),
            State::Parked(account) | State::Passing(account) => KeyState {
                key: Key::from(key),
                depth: 0,
                in_flight: 0,
                elsewhere: None,
                excess: account
                    .excess(self.rates.of(key), self.counted_at(now))
                    .requests(),
                oldest_wait: Duration::ZERO,
                active: false,
            },
        };
        let lately = || self.shard.lately_elsewhere(key, now);
        state.elsewhere = state.elsewhere.or_else(lately);
        state
    }
}

impl Handle<Forget> for ZoneSupervisor {
    fn handle(&mut self, forget: Forget) {
        let Forget {
            key,
            waiters,
            reply,
        } = forget;
        let known = self.keys.find(&key);
        if let Some(active) = known.and_then(|index| self.keys[index].active()) {
            return active.tell(ForgetKey { waiters, reply });
        }
        let elsewhere = self.shard.sharing().map(|zone| zone.forget(&key, None));
        let parked = known.and_then(|index| self.remove(index));
        // The caller may have gone.
        let _gone = reply.send(parked.map(|_| 0).or(elsewhere.map(|()| 0)));
    }
}
