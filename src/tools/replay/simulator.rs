use std::collections::BTreeSet;
use std::time::Duration;

use foldhash::fast::RandomState;
use lru::LruCache;

use super::key::add;
use super::line::Line;
use crate::config::target;
use crate::config::{Route, RouteLimit, Settings, Zone};
use crate::limit::{Account, Algorithm, Excess, Moment, Verdict};
use crate::observe::metrics::LimitStatus;

/// The simulated outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// When it came: the time on its line, or the latest time of an earlier line if that is later.
    pub time: Moment,
    /// The verdict of all its limits together.
    pub status: LimitStatus,
    /// When it would have left; `None` if it was rejected.
    pub departure: Option<Moment>,
    /// The level that it reached, or would have reached, at the limit that decided.
    pub excess: Excess,
}

/// The gateway's zones, deciding on one request after the other.
pub struct Simulator<'a> {
    settings: &'a Settings,
    zones: Vec<LruCache<Box<[u8]>, Key, RandomState>>,
    now: Moment,
    /// Variables that keys need and the trace does not contain.
    untold: BTreeSet<String>,
}

struct Key {
    account: Account,
    /// When the last waiter of the key leaves. The key is not evicted before.
    busy_until: Moment,
}

impl<'a> Simulator<'a> {
    /// Creates the zones of `settings`, all empty.
    #[must_use]
    pub fn new(settings: &'a Settings) -> Self {
        let zones = settings
            .zones
            .iter()
            .map(|_| LruCache::unbounded_with_hasher(RandomState::default()))
            .collect();
        Self {
            settings,
            zones,
            now: Moment::default(),
            untold: BTreeSet::new(),
        }
    }

    /// The variables that keys need and no line contained.
    ///
    /// A request whose key was otherwise empty was not limited.
    pub fn untold(&self) -> impl Iterator<Item = &str> {
        self.untold.iter().map(String::as_str)
    }

    /// Decides on the next request; `None` if no route takes it.
    pub fn judge(&mut self, line: &Line) -> Option<Outcome> {
        self.now = self.now.max(line.time);
        let route = self.route(line)?;
        let mut asked = Vec::with_capacity(route.limits.len());
        let mut refused = None;
        for wanted in &route.limits {
            let Some(key) = self.key(&self.settings.zones[wanted.zone], line) else {
                continue;
            };
            if !self.remember(wanted.zone, &key) {
                return Some(self.rejected(route, Excess::default()));
            }
            let (rate, now) = (self.settings.zones[wanted.zone].rate, self.now);
            let refusal = self.zones[wanted.zone]
                .peek(&key)
                .and_then(|known| known.account.refuses(rate, wanted.limit, now));
            refused = refused.or(refusal.map(|refusal| refusal.excess));
            asked.push((*wanted, key));
        }
        // A request that one limit rejects is charged by none. But its keys count as used.
        if let Some(excess) = refused {
            return Some(self.rejected(route, excess));
        }
        let mut verdicts = Vec::with_capacity(asked.len());
        for (RouteLimit { zone, limit }, key) in &asked {
            let (rate, now) = (self.settings.zones[*zone].rate, self.now);
            if let Some(known) = self.zones[*zone].peek_mut(key) {
                verdicts.push(known.account.decide(rate, *limit, now));
            }
        }
        let outcome = self.accepted(route, &verdicts);
        for (RouteLimit { zone, .. }, key) in &asked {
            let known = self.zones[*zone].peek_mut(key);
            if let (Some(known), Some(departure)) = (known, outcome.departure) {
                known.busy_until = known.busy_until.max(departure);
            }
        }
        Some(outcome)
    }

    fn rejected(&self, route: &Route, excess: Excess) -> Outcome {
        let (status, departure) = if route.dry_run {
            (LimitStatus::RejectedDryRun, Some(self.now))
        } else {
            (LimitStatus::Rejected, None)
        };
        Outcome {
            time: self.now,
            status,
            departure,
            excess,
        }
    }

    fn accepted(&self, route: &Route, verdicts: &[Verdict]) -> Outcome {
        let told = verdicts.iter().map(|verdict| match *verdict {
            Verdict::Delay { until, excess } => (Some(until), excess),
            Verdict::Pass { excess } => (None, excess),
            Verdict::Reject(refusal) => (None, refusal.excess),
        });
        // The first of the limits with the longest wait.
        let decisive = told.rev().max_by_key(|(until, _)| *until);
        let (until, excess) = decisive.unwrap_or((None, Excess::default()));
        let (status, departure) = match until {
            None => (LimitStatus::Passed, self.now),
            Some(_) if route.dry_run => (LimitStatus::DelayedDryRun, self.now),
            Some(until) => (LimitStatus::Delayed, until),
        };
        Outcome {
            time: self.now,
            status,
            departure: Some(departure),
            excess,
        }
    }

    fn route(&self, line: &Line) -> Option<&'a Route> {
        let method = line.recorded.as_ref().map(|recorded| &*recorded.method);
        let (_, route) = self
            .settings
            .route(&target::path(line.path.as_bytes()), None, method)?;
        Some(route)
    }

    fn key(&mut self, zone: &Zone, line: &Line) -> Option<Box<[u8]>> {
        let key = match (&line.key, &line.recorded) {
            (Some(key), _) => key.to_vec(),
            (None, Some(recorded)) => {
                if recorded.client.is_some_and(|client| zone.is_exempt(client)) {
                    return None;
                }
                match &recorded.keyed {
                    Some((decided, key)) if **decided == zone.name => key.as_bytes().to_vec(),
                    _ => zone.key.fill(|variable, key| {
                        if !add(key, variable, zone.ipv6_prefix, line, recorded) {
                            self.untold.insert(variable.to_string());
                        }
                    }),
                }
            }
            (None, None) => Vec::new(),
        };
        (!key.is_empty()).then(|| key.into_boxed_slice())
    }

    /// Marks a key as used. `false` if all keys of the full zone have waiters.
    fn remember(&mut self, zone: usize, key: &[u8]) -> bool {
        if self.zones[zone].get(key).is_some() {
            return true;
        }
        let has_room = self.make_room(zone);
        if has_room {
            let new = Key::new(self.settings.zones[zone].algorithm, self.now);
            self.zones[zone].put(key.into(), new);
        }
        has_room
    }

    /// Makes room for one more key, as the gateway does.
    ///
    /// Evicts the least recently used key without waiters.
    fn make_room(&mut self, zone: usize) -> bool {
        let keys = &mut self.zones[zone];
        if keys.len() < self.settings.zones[zone].max_keys.get() {
            return true;
        }
        for _ in 0..keys.len() {
            match keys.peek_lru() {
                Some((_, oldest)) if oldest.busy_until <= self.now => {
                    return keys.pop_lru().is_some();
                }
                Some((key, _)) => {
                    let key = key.clone();
                    keys.promote(&key);
                }
                None => break,
            }
        }
        false
    }
}

impl Key {
    fn new(algorithm: Algorithm, now: Moment) -> Self {
        Self {
            account: Account::new(algorithm),
            busy_until: now,
        }
    }
}

impl Outcome {
    /// How long it would have waited.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.departure.map(|departure| departure.since(self.time))
    }
}
