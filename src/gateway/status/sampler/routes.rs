//! Samples of routes.

use std::cmp::Reverse;

use super::growth::Before;
use crate::http::gateway::Gateway;
use crate::observe::metrics::{Counts, NO_ROUTE, RouteMetrics};
use crate::status::counts;
use crate::status::minute::{self, latency};
use crate::status::views::{Codes, Plain, RouteSample};

/// Number of the busiest routes in a sample.
const BUSIEST: usize = 20;

/// Counts of each route one second ago.
#[derive(Default)]
pub(super) struct Routes(Before<String, Counted>);

/// Responses, disconnected clients, and latencies.
///
/// Latencies are `None` for a route above the maximum number.
type Counted = (Codes, u64, Option<Counts>);

/// Responses of one second.
pub(super) struct Answers {
    /// Responses of all routes.
    pub(super) codes: Codes,
    /// Requests of these whose client disconnected before a response began.
    pub(super) left: u64,
    /// The busiest routes.
    pub(super) routes: Vec<RouteSample>,
}

impl Routes {
    /// Responses of the last second.
    pub(super) fn sample(&mut self, gateway: &Gateway) -> Answers {
        self.0.begin();
        let (mut all, mut left, mut routes) = (Codes::new(), 0, Vec::new());
        for (name, metrics) in named(gateway) {
            // Routes with the same host and path count together.
            if self.0.has(&name) {
                continue;
            }
            let is_kept = self.0.len() < minute::MAX_KEPT;
            let latencies = is_kept.then(|| metrics.durations.counts());
            let now = (counts::codes(metrics), counts::left(metrics), latencies);
            let (codes, left_now, latencies) = self.0.since(name.clone(), now);
            left += left_now;
            counts::add(&mut all, &codes);
            if !codes.is_empty() {
                routes.push(RouteSample {
                    name: Plain::new(&name),
                    codes,
                    latency: latencies.as_ref().map(latency).unwrap_or_default(),
                });
            }
        }
        routes.sort_by_key(|route| Reverse(route.codes.values().sum::<u64>()));
        routes.truncate(BUSIEST);
        Answers {
            codes: all,
            left,
            routes,
        }
    }
}

/// Names and metrics of the routes, in the order of the file.
///
/// The last one counts requests that matched no route.
fn named(gateway: &Gateway) -> impl Iterator<Item = (String, &RouteMetrics)> {
    let unrouted = (NO_ROUTE.to_owned(), gateway.no_route_metrics());
    std::iter::once(unrouted).chain(gateway.counted_routes())
}
