use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use config::Route;
use limit::{SavedWork, Work};
use serde::{Deserialize, Serialize};

use super::{METHODS, RouteCosts};
use crate::http::gateway::Gateway;

/// What is kept over a restart of the costs of one method of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCost {
    /// The name of the route.
    pub(crate) route: String,
    /// A checksum of what decides which requests the route takes.
    pub(crate) selector: u32,
    /// The method; `other` for all that have no cost of their own.
    pub(crate) method: String,
    /// What was learned.
    #[serde(flatten)]
    pub(crate) work: SavedWork,
}

impl Gateway {
    /// What was learned of the routes to the origin with this index.
    pub(crate) fn saved_costs(&self, origin: usize) -> Vec<SavedCost> {
        let routes = self.learned_routes_to(origin);
        let saved = routes.flat_map(|(route, costs)| {
            let methods = METHODS.iter().zip(&costs.work.methods);
            methods.filter_map(|(method, it)| {
                let work = it.work.lock().unwrap_or_else(PoisonError::into_inner);
                Some(SavedCost {
                    route: route.name(),
                    selector: checksum(route),
                    method: (*method).to_owned(),
                    work: work.as_ref()?.save(),
                })
            })
        });
        saved.collect()
    }

    /// Goes on from what was learned of routes to this origin before, where they are still there.
    ///
    /// Its first request must not have come.
    pub(crate) fn restore_costs(&self, origin: usize, saved: &[SavedCost]) {
        for (route, costs) in self.learned_routes_to(origin) {
            let (name, selector) = (route.name(), checksum(route));
            let is_of_route = |it: &&SavedCost| it.selector == selector && it.route == name;
            for it in saved.iter().filter(is_of_route) {
                costs.restore(it);
            }
        }
    }

    fn learned_routes_to(&self, origin: usize) -> impl Iterator<Item = (&Route, &RouteCosts)> {
        let routes = self.learned_routes();
        let routes = routes.filter(move |(_, route, _)| route.origin() == Some(origin));
        routes.map(|(_, route, costs)| (route, costs))
    }
}

impl RouteCosts {
    fn restore(&self, saved: &SavedCost) {
        let Some(nth) = METHODS.iter().position(|it| *it == saved.method) else {
            return;
        };
        let Some(method) = self.work.methods.get(nth) else {
            return;
        };
        let restored = Work::restore(&saved.work);
        let micros = restored.learned().map_or(0, |it| it.micros);
        let mut work = method.work.lock().unwrap_or_else(PoisonError::into_inner);
        *work = Some(Box::new(restored));
        drop(work);
        method.micros.store(micros, Ordering::Relaxed);
        self.origin.update();
    }
}

/// The same for two versions of one route, and most probably another one for another route.
///
/// Conditions may have secrets, which are not for a file.
fn checksum(route: &Route) -> u32 {
    crc32fast::hash(format!("{:?}", route.selector()).as_bytes())
}
