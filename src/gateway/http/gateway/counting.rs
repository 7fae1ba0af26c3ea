//! Counts of requests, by route and by class. A class is a group of requests at an origin's gate.

use std::time::Duration;

use config::Route;

use super::Gateway;
use crate::observe::metrics::{MAX_NAMED_ROUTES, OTHER_ROUTES, RouteMetrics};

impl Gateway {
    /// Returns the metrics of routes, and their names, in the order of the file.
    ///
    /// The last one is that of all routes after the first [`MAX_NAMED_ROUTES`], if there are any.
    pub fn counted_routes(&self) -> impl Iterator<Item = (String, &RouteMetrics)> {
        let routes = &self.settings.routes;
        let named = routes.iter().take(MAX_NAMED_ROUTES).map(Route::name);
        let other = (routes.len() > MAX_NAMED_ROUTES).then(|| OTHER_ROUTES.to_owned());
        let metrics = self.routes.iter().map(|metrics| &**metrics);
        named.chain(other).zip(metrics)
    }

    /// Counts a completed request for its route. `None`: no route matched.
    pub fn count_request(&self, route: Option<usize>, status: u16, duration: Duration) {
        let metrics = route.and_then(|route| self.routes.get(route));
        metrics.unwrap_or(&self.no_route).count(status, duration);
    }

    /// Counts a request that the networks of its route exclude.
    pub fn count_refused(&self, route: usize) {
        if let Some(metrics) = self.routes.get(route) {
            metrics.refused.add(1);
        }
    }

    /// Returns the metrics of the requests that matched no route.
    pub(crate) fn no_route_metrics(&self) -> &RouteMetrics {
        &self.no_route
    }

    /// Counts a request for its class at its origin's gate, if the gate has classes.
    ///
    /// An unknown class is counted as the first class, as at the gate.
    pub(crate) fn count_class(&self, origin: usize, class: &str) {
        let classes = &self.classes[origin];
        let named = classes.iter().find(|(name, _)| **name == *class);
        if let Some((_, metrics)) = named.or(classes.first()) {
            metrics.add(1);
        }
    }
}
