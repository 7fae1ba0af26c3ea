//! Learned costs of requests, by route and method.
//!
//! The cost of a request is the number of requests that it counts for in its limits. It is learned
//! from the time that the origin takes (its *work*). `saved` keeps it over a restart.
//! `exchange::learned_cost` measures the time of a request, and `exchange::cost` charges by it.

mod saved;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use config::{LearnedCost, Route, Settings};
use limit::{Cost, LearnedWork, Work};

use super::Gateway;

pub use saved::SavedCost;

/// Methods that have their own cost, and `other`, which all other methods share.
const METHODS: [&str; 8] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other",
];

/// Costs by the route's index; empty if no route learns costs.
pub(super) type LearnedCosts = Vec<Option<RouteCosts>>;

/// Costs of a route.
#[derive(Debug)]
pub struct RouteCosts {
    /// Configured rule of the route.
    rule: LearnedCost,
    /// Learned times of the route.
    work: Arc<RouteWork>,
    /// Learned times of all routes to the same origin.
    origin: Arc<OriginWork>,
}

/// Time that requests of a route take at their origin. A reload keeps it.
#[derive(Debug, Default)]
struct RouteWork {
    methods: [MethodWork; METHODS.len()],
}

/// Time that requests of one method take at the origin.
#[derive(Debug, Default)]
struct MethodWork {
    /// Learned time in microseconds; 0: nothing learned yet.
    micros: AtomicU32,
    /// Computes `micros`; `None` until a request has ended.
    learner: Mutex<Option<Box<Work>>>,
    /// Number of ended requests.
    requests: AtomicU64,
    /// Total time of all requests at the origin, in microseconds.
    total: AtomicU64,
}

/// Learned times of all routes to one origin.
#[derive(Debug, Default)]
struct OriginWork {
    routes: Vec<Arc<RouteWork>>,
    /// Median of the learned times in microseconds; 0: nothing learned yet.
    median: AtomicU32,
}

/// Cost of the requests of one method, for the API and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodCost {
    /// Method; `other` for all methods that share a cost.
    pub method: &'static str,
    /// Cost of a request now. With `is_shadow` it is not charged.
    pub cost: Cost,
    /// Learned time of a request at the origin; `None`: nothing learned yet.
    pub time: Option<Duration>,
    /// Source of the cost: `quiet`, `busy`, `median` or `none`.
    ///
    /// `quiet` and `busy`: learned while the origin had few or many requests. `median`: median of
    /// the origin's routes.
    pub source: &'static str,
    /// Number of requests that have ended since the gateway started.
    pub requests: u64,
    /// Total time of these requests at the origin.
    pub total: Duration,
}

/// Creates the costs of these settings.
///
/// A route keeps what it has learned in the version `before`, unless its origin has another name.
pub(super) fn costs(settings: &Settings, before: &Gateway) -> LearnedCosts {
    if !settings.routes.iter().any(|it| it.cost.learned().is_some()) {
        return LearnedCosts::new();
    }
    // What each route has learned, by its conditions and its origin.
    let known = before.learned_routes().map(|(_, route, costs)| {
        let origin = origin_name(&before.settings, route);
        ((route.selector(), origin), &costs.work)
    });
    let known: HashMap<_, _> = known.collect();
    let works = settings.routes.iter().map(|route| {
        route.cost.learned()?;
        let known = known.get(&(route.selector(), origin_name(settings, route)));
        Some(known.map_or_else(Arc::default, |work| Arc::clone(work)))
    });
    let works: Vec<_> = works.collect();
    let origin_work = |index: usize| {
        let routes = settings.routes.iter().zip(&works);
        let to_origin = routes.filter(|(route, _)| route.origin() == Some(index));
        let origin = OriginWork {
            routes: to_origin.filter_map(|(_, work)| work.clone()).collect(),
            median: AtomicU32::new(0),
        };
        origin.update_median();
        Arc::new(origin)
    };
    let origins: Vec<_> = (0..settings.origins.len()).map(origin_work).collect();
    let costs = settings.routes.iter().zip(&works).map(|(route, work)| {
        Some(RouteCosts {
            rule: *route.cost.learned()?,
            work: Arc::clone(work.as_ref()?),
            origin: Arc::clone(origins.get(route.origin()?)?),
        })
    });
    costs.collect()
}

/// Returns the name of a route's origin.
fn origin_name<'s>(settings: &'s Settings, route: &Route) -> Option<&'s str> {
    let origin = settings.origins.get(route.origin()?)?;
    Some(&origin.name)
}

impl Gateway {
    /// Returns the costs of the route with this index, if they are learned.
    pub fn learned_costs(&self, route: usize) -> Option<&RouteCosts> {
        self.learned_costs.get(route)?.as_ref()
    }

    /// Returns the routes whose costs are learned, each with its index.
    pub(crate) fn learned_routes(&self) -> impl Iterator<Item = (usize, &Route, &RouteCosts)> {
        let costs = &self.learned_costs;
        let routes = self.settings.routes.iter().zip(costs).enumerate();
        routes.filter_map(|(index, (route, costs))| Some((index, route, costs.as_ref()?)))
    }
}

impl RouteCosts {
    /// Returns the charge of a request of this method: 1 while the costs are only shown.
    pub fn charged(&self, method: &[u8]) -> Cost {
        if self.rule.is_shadow {
            return Cost::ONE;
        }
        self.cost(self.work.of_method(method))
    }

    /// Returns the configured rule.
    pub fn rule(&self) -> &LearnedCost {
        &self.rule
    }

    /// Returns the cost of a request that took its origin this long.
    pub(crate) fn cost_of_time(&self, took: Duration) -> Cost {
        Cost::of_work(took, self.rule.unit, self.rule.max)
    }

    /// Counts a request of this method that took its origin this long.
    pub(crate) fn count(&self, method: &[u8], took: Duration) {
        let work = self.work.of_method(method);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        work.requests.fetch_add(1, Ordering::Relaxed);
        work.total.fetch_add(micros, Ordering::Relaxed);
    }

    /// Learns from a request of this method that took its origin this long.
    ///
    /// `is_quiet`: whether the origin had few other requests.
    pub(crate) fn learn(&self, method: &[u8], took: Duration, is_quiet: bool) {
        let work = self.work.of_method(method);
        let mut learner = work.learner.lock().unwrap_or_else(PoisonError::into_inner);
        let learner = learner.get_or_insert_default();
        if learner.learn(took, is_quiet) {
            let micros = learner.learned().map_or(0, |it| it.micros);
            work.micros.store(micros, Ordering::Relaxed);
            self.origin.update_median();
        }
    }

    /// Returns the methods with ended requests, here or before a restart, and their costs.
    pub fn methods(&self) -> impl Iterator<Item = MethodCost> {
        METHODS
            .into_iter()
            .zip(&self.work.methods)
            .filter_map(|(method, work)| {
                let requests = work.requests.load(Ordering::Relaxed);
                if requests == 0 && work.micros.load(Ordering::Relaxed) == 0 {
                    return None;
                }
                let learned = work.learned();
                let without_own_time = match self.origin.median() {
                    0 => "none",
                    _ => "median",
                };
                Some(MethodCost {
                    method,
                    cost: self.cost(work),
                    time: learned.map(LearnedWork::time),
                    source: learned.map_or(without_own_time, LearnedWork::source),
                    requests,
                    total: Duration::from_micros(work.total.load(Ordering::Relaxed)),
                })
            })
    }

    /// Returns the cost by the learned time, or by the median of the origin's routes.
    fn cost(&self, work: &MethodWork) -> Cost {
        let own_micros = work.micros.load(Ordering::Relaxed);
        let micros = match own_micros {
            0 => self.origin.median(),
            learned => learned,
        };
        match micros {
            0 => Cost::ONE,
            micros => self.cost_of_time(Duration::from_micros(micros.into())),
        }
    }
}

impl RouteWork {
    /// Returns the entry of a method, or the shared entry of the other methods.
    fn of_method(&self, method: &[u8]) -> &MethodWork {
        let (named, other) = self.methods.split_at(METHODS.len() - 1);
        let mut methods = METHODS.iter().zip(named);
        let found = methods.find(|(name, _)| name.as_bytes() == method);
        found.map_or(&other[0], |(_, work)| work)
    }
}

impl MethodWork {
    /// Returns the learned time and its source.
    fn learned(&self) -> Option<LearnedWork> {
        let learner = self.learner.lock().unwrap_or_else(PoisonError::into_inner);
        learner.as_ref()?.learned()
    }
}

impl OriginWork {
    /// Returns the median in microseconds; 0 if nothing was learned.
    fn median(&self) -> u32 {
        self.median.load(Ordering::Relaxed)
    }

    /// Updates the median. Of an even number of values, it is the lower one of the middle two.
    fn update_median(&self) {
        let methods = self.routes.iter().flat_map(|route| &route.methods);
        let learned = methods.map(|it| it.micros.load(Ordering::Relaxed));
        let mut learned: Vec<_> = learned.filter(|it| *it > 0).collect();
        learned.sort_unstable();
        let middle = learned.len().saturating_sub(1) / 2;
        let median = learned.get(middle).copied().unwrap_or_default();
        self.median.store(median, Ordering::Relaxed);
    }
}
