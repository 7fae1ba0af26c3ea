//! The zones of a scenario. A zone limits the rate of each of its keys.

use std::time::Duration;

use config::OnStoreFailure::{Closed, Local, Open};
use config::{self, OnStoreFailure};
use limit::{Algorithm, Cost, Delay, Limit, Rate};

use super::parse_file;
use crate::simulation::random::Random;

const KEYS: [&str; 4] = ["ada", "bob", "cyd", "dan"];

/// A zone as in the first files of all gateways.
#[derive(Debug)]
pub(in crate::simulation) struct ZonePlan {
    pub(in crate::simulation) name: String,
    pub(in crate::simulation) algorithm: Algorithm,
    pub(in crate::simulation) rate: Rate,
    /// Rate of the first key, if it has a plan.
    plan: Option<Rate>,
    pub(in crate::simulation) keys: &'static [&'static str],
    /// Limits of the routes that use the zone.
    pub(in crate::simulation) limits: Vec<Limit>,
    pub(in crate::simulation) on_store_failure: OnStoreFailure,
    /// Duration of leases of busy keys; zero: no leases.
    pub(in crate::simulation) lease: Duration,
}

impl ZonePlan {
    /// Draws a zone.
    pub(super) fn new(index: u64, random: &mut Random) -> Self {
        // Half of all zones have the default.
        let (_, algorithm) = Algorithm::NAMED[random.pick(&[0, 0, 0, 0, 1, 2, 3, 4])];
        let lease = lease(algorithm, random);
        let rate = if lease.is_zero() || random.chance(30) {
            rate(random)
        } else {
            fast_rate(random)
        };
        let plan = random.chance(25).then(|| self::rate(random));
        let has_costs = random.chance(25);
        let has_one_delay = random.chance(70);
        let first = limit(algorithm, rate, random, has_costs);
        let mut limits = vec![first];
        if random.chance(40) {
            let other = limit(algorithm, rate, random, has_costs);
            let delay = if has_one_delay {
                first.delay
            } else {
                other.delay
            };
            limits.push(Limit { delay, ..other });
        }
        let on_store_failure = random.pick(&[Local, Local, Local, Open, Closed]);
        let keys = 1 + random.index(KEYS.len());
        Self {
            name: format!("zone{index}"),
            algorithm,
            rate,
            plan,
            keys: &KEYS[..keys],
            limits,
            on_store_failure,
            lease,
        }
    }

    /// Returns a leaky bucket with one key, whose requests wait.
    pub(in crate::simulation) fn of(rate: &str, burst: u32) -> Self {
        Self {
            name: "zone0".to_owned(),
            algorithm: Algorithm::LeakyBucket,
            rate: rate.parse().expect("a rate"),
            plan: None,
            keys: &KEYS[..1],
            limits: vec![Limit {
                burst,
                ..Limit::unlimited(Delay::Above(0), Cost::ONE)
            }],
            on_store_failure: Local,
            lease: Duration::ZERO,
        }
    }

    pub(in crate::simulation) fn rate_of(&self, key: &str) -> Rate {
        match self.plan {
            Some(rate) if key == self.keys[0] => rate,
            _ => self.rate,
        }
    }

    pub(in crate::simulation) fn max_burst(&self) -> u32 {
        let bursts = self.limits.iter().map(|limit| limit.burst);
        bursts.max().unwrap_or(0)
    }

    pub(in crate::simulation) fn max_cost(&self) -> u32 {
        let costs = self.limits.iter().map(|limit| limit.cost.get());
        costs.max().unwrap_or(1)
    }

    /// Returns whether requests have different costs.
    pub(in crate::simulation) fn has_mixed_costs(&self) -> bool {
        let mut costs = self.limits.iter().map(|limit| limit.cost);
        let first = costs.next();
        costs.any(|cost| Some(cost) != first)
    }

    /// Returns whether slots of a lease may expire unused and unreturned.
    ///
    /// Requests of a sliding window can always be returned, because they count in the next window,
    /// too.
    pub(in crate::simulation) fn leases_may_expire(&self) -> bool {
        !self.lease.is_zero() && self.algorithm != Algorithm::SlidingWindowCounter
    }

    /// Returns the sum of the rates of all keys, per second.
    pub(super) fn rates(&self) -> f64 {
        self.keys
            .iter()
            .map(|key| self.rate_of(key).per_second())
            .sum()
    }

    /// Returns the zone as in a gateway's file.
    pub(in crate::simulation) fn settings(&self) -> config::Zone {
        let plan = self.plan.map_or_else(String::new, |rate| {
            let key = self.keys[0];
            format!("plans.gold = {{ keys = [\"{key}\"], rate = \"{rate}\" }}\n")
        });
        config::Zone {
            name: self.name.clone(),
            algorithm: self.algorithm,
            rate: self.rate,
            idle_timeout: Duration::from_secs(3),
            store: config::StoreKind::Redis,
            lease: self.lease,
            on_store_failure: self.on_store_failure,
            ..parse_file(&plan, "").0
        }
    }
}

/// Draws a rate that all algorithms can have.
pub(super) fn rate(random: &mut Random) -> Rate {
    let rates = [
        "5r/s", "10r/s", "30r/s", "100r/s", "7r/s", "20r/2s", "333r/s",
    ];
    random.pick(&rates).parse().expect("a rate")
}

/// Draws a rate of a zone in which leases pay off.
fn fast_rate(random: &mut Random) -> Rate {
    let rates = ["100r/s", "333r/s", "1000r/s", "1500r/s"];
    random.pick(&rates).parse().expect("a rate")
}

/// Draws the duration of leases. The check of the file allows no lease with a log.
fn lease(algorithm: Algorithm, random: &mut Random) -> Duration {
    let lease = random.pick(&[0, 0, 5, 20, 100].map(Duration::from_millis));
    if algorithm == Algorithm::SlidingWindowLog {
        return Duration::ZERO;
    }
    lease
}

/// Draws the limit of a route.
fn limit(algorithm: Algorithm, rate: Rate, random: &mut Random, has_costs: bool) -> Limit {
    let cost = if has_costs && random.chance(70) {
        Cost::new(random.small(1..6)).unwrap_or(Cost::ONE)
    } else {
        Cost::ONE
    };
    if algorithm.has_windows() {
        // As the check of the file requires.
        let burst = rate.whole_count().unwrap_or(1).saturating_sub(1);
        let unlimited = Limit::unlimited(Delay::Never, cost);
        return Limit { burst, ..unlimited };
    }
    let burst = random.small(0..25);
    let delay = match random.number(0..6) {
        0..4 => Delay::Above(0),
        4 => Delay::Above(random.small(0..burst + 1)),
        _ => Delay::Never,
    };
    let max_wait = random.chance(20).then(|| random.millis(5..500));
    Limit {
        burst,
        max_wait,
        ..Limit::unlimited(delay, cost)
    }
}
