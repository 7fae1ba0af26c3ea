//! Saves learned costs, and restores them after a restart.
//!
//! The cost of a request is the number of requests that it counts for in its limits. It is learned
//! from the time that the origin takes (its *work*). `server::state` writes the file.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use config::Route;
use limit::{SavedWork, Work};
use serde::{Deserialize, Serialize};

use super::{METHODS, RouteCosts};
use crate::http::gateway::Gateway;

/// Saved cost of one method of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCost {
    /// Name of the route.
    pub(crate) route: String,
    /// Checksum of the conditions that select the route's requests.
    pub(crate) selector: u32,
    /// Method; `other` for all methods that share a cost.
    pub(crate) method: String,
    /// Learned work.
    #[serde(flatten)]
    pub(crate) work: SavedWork,
}

impl Gateway {
    /// Returns the learned costs of all routes to the origin with this index.
    pub(crate) fn saved_costs(&self, origin: usize) -> Vec<SavedCost> {
        let routes = self.learned_routes_to(origin);
        let saved = routes.flat_map(|(route, costs)| {
            let methods = METHODS.iter().zip(&costs.work.methods);
            methods.filter_map(|(method, work)| {
                let learner = work.learner.lock().unwrap_or_else(PoisonError::into_inner);
                Some(SavedCost {
                    route: route.name(),
                    selector: checksum(route),
                    method: (*method).to_owned(),
                    work: learner.as_ref()?.save(),
                })
            })
        });
        saved.collect()
    }

    /// Restores saved costs of routes to this origin, if the routes still exist.
    ///
    /// Call it before the origin's first request.
    pub(crate) fn restore_costs(&self, origin: usize, saved: &[SavedCost]) {
        for (route, costs) in self.learned_routes_to(origin) {
            let (name, selector) = (route.name(), checksum(route));
            let is_of_route = |it: &&SavedCost| it.selector == selector && it.route == name;
            for cost in saved.iter().filter(is_of_route) {
                costs.restore(cost);
            }
        }
    }

    /// Returns the routes to an origin whose costs are learned.
    fn learned_routes_to(&self, origin: usize) -> impl Iterator<Item = (&Route, &RouteCosts)> {
        let routes = self.learned_routes();
        let routes = routes.filter(move |(_, route, _)| route.origin() == Some(origin));
        routes.map(|(_, route, costs)| (route, costs))
    }
}

impl RouteCosts {
    /// Restores the saved cost of one method.
    fn restore(&self, saved: &SavedCost) {
        let mut methods = METHODS.iter().zip(&self.work.methods);
        let Some((_, work)) = methods.find(|(name, _)| **name == saved.method) else {
            return;
        };
        let restored = Work::restore(&saved.work);
        let micros = restored.learned().map_or(0, |it| it.micros);
        *work.learner.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(restored));
        work.micros.store(micros, Ordering::Relaxed);
        self.origin.update_median();
    }
}

/// Returns a checksum of a route's selector: equal for two versions of the same route.
///
/// A checksum, because conditions may contain secrets, which must not be written to a file.
fn checksum(route: &Route) -> u32 {
    crc32fast::hash(format!("{:?}", route.selector()).as_bytes())
}
