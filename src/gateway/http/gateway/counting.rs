//! Where requests are counted: by route and by class.

use std::time::Duration;

use config;

use super::Gateway;
use crate::observe::metrics::{ClassMetrics, MAX_NAMED_ROUTES, OTHER_ROUTES, RouteMetrics};

impl Gateway {
    /// The names that requests are counted under, in the order of the file, with their metrics.
    ///
    /// The last one is that of all routes behind the first [`MAX_NAMED_ROUTES`], if there are any.
    pub fn counted_routes(&self) -> impl Iterator<Item = (String, &RouteMetrics)> {
        let routes = &self.settings.routes;
        let named = routes
            .iter()
            .take(MAX_NAMED_ROUTES)
            .map(config::Route::name);
        let other = (routes.len() > MAX_NAMED_ROUTES).then(|| OTHER_ROUTES.to_owned());
        let metrics = self.routes.iter().map(|metrics| &**metrics);
        named.chain(other).zip(metrics)
    }

    /// Counts an answered request for its route; `None` means that no route matched.
    pub fn count_request(&self, route: Option<usize>, status: u16, duration: Duration) {
        let metrics = route.and_then(|route| self.routes.get(route));
        metrics.unwrap_or(&self.no_route).count(status, duration);
    }

    /// Counts a request whose client its route does not let in.
    pub fn count_refused(&self, route: usize) {
        if let Some(metrics) = self.routes.get(route) {
            metrics.count_refused();
        }
    }

    /// The metrics of the requests that no route took.
    #[must_use]
    pub fn no_route_metrics(&self) -> &RouteMetrics {
        &self.no_route
    }

    /// The metrics of a request's class at its origin's gate, if it has classes.
    ///
    /// `plan` is the index of the plan of its key in the zone that shares the gate.
    #[must_use]
    pub fn class_metrics(&self, route: usize, plan: Option<usize>) -> Option<&ClassMetrics> {
        let origin = self.settings.routes.get(route)?.origin()?;
        self.classes.of_request(route, origin, plan)
    }
}
