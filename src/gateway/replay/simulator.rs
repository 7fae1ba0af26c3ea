use config::{Route, RouteLimit, Settings};
use limit::{Account, Algorithm, Excess, Moment};

use super::line::Line;
use super::outcome::Outcome;
use super::request_keys::RequestKeys;
use super::zone_keys::ZoneKeys;

/// The gateway's zones, deciding on one request after the other.
///
/// It knows no gates in front of origins: see [`GatedSimulator`](super::GatedSimulator).
pub struct Simulator<'a> {
    settings: &'a Settings,
    requests: RequestKeys<'a>,
    zones: Vec<ZoneKeys<Key>>,
    now: Moment,
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
        Self {
            settings,
            requests: RequestKeys::new(settings),
            zones: settings.zones.iter().map(ZoneKeys::new).collect(),
            now: Moment::default(),
        }
    }

    /// The variables that keys need and no line contained.
    ///
    /// A request whose key was otherwise empty was not limited.
    pub fn untold(&self) -> impl Iterator<Item = &str> {
        self.requests.untold()
    }

    /// The route that takes a request.
    #[must_use]
    pub fn route(&self, line: &Line) -> Option<&'a Route> {
        self.requests.route(line)
    }

    /// Decides on the next request; `None` if no route takes it.
    pub fn judge(&mut self, line: &Line) -> Option<Outcome> {
        let route = self.route(line)?;
        Some(self.judge_on(route, line))
    }

    /// Decides on the next request, which comes to this route.
    pub fn judge_on(&mut self, route: &Route, line: &Line) -> Outcome {
        self.now = self.now.max(line.time);
        let now = self.now;
        let mut asked = Vec::with_capacity(route.limits.len());
        let mut refused = None;
        for mut wanted in route.limits.iter().map(|it| it.costing(line.cost)) {
            let zone = &self.settings.zones[wanted.zone];
            let Some(key) = self.requests.limited(zone, route, line) else {
                continue;
            };
            wanted.limit = zone.limit_of(&key, wanted.limit);
            let keys = &mut self.zones[wanted.zone];
            let new = || Key::new(zone.algorithm, now);
            if !keys.remember(&key, |oldest| oldest.busy_until > now, new) {
                return Outcome::rejected(route, Excess::default(), now);
            }
            let known = keys.peek(&key);
            let refusal = known
                .and_then(|known| known.account.refuses(zone.rate_of(&key), wanted.limit, now));
            refused = refused.or(refusal.map(|refusal| refusal.excess));
            asked.push((wanted, key));
        }
        // A request that one limit rejects is charged by none. But its keys count as used.
        if let Some(excess) = refused {
            return Outcome::rejected(route, excess, now);
        }
        let mut verdicts = Vec::with_capacity(asked.len());
        for (RouteLimit { zone, limit }, key) in &asked {
            let rate = self.settings.zones[*zone].rate_of(key);
            if let Some(known) = self.zones[*zone].peek_mut(key) {
                verdicts.push(known.account.decide(rate, *limit, now));
            }
        }
        let outcome = Outcome::accepted(route, &verdicts, now);
        for (RouteLimit { zone, .. }, key) in &asked {
            let known = self.zones[*zone].peek_mut(key);
            if let (Some(known), Some(departure)) = (known, outcome.departure) {
                known.busy_until = known.busy_until.max(departure);
            }
        }
        outcome
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
