//! Samples of routes.

pub(crate) mod metrics;

use std::cmp::Reverse;

use serde::Serialize;

use super::counts::{self, Labelled};
use super::growth::Before;
use super::minute::{self, Latency, latency};
use super::plain::Plain;
use crate::http::gateway::Gateway;
use crate::observe::metrics::{Counts, NO_ROUTE, RouteMetrics};

/// Number of the busiest routes in a sample.
const BUSIEST: usize = 20;

/// Sample of a route for one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RouteSample {
    /// Name of the route.
    pub name: Plain,
    /// Responses to clients, by status class.
    pub codes: Labelled,
    /// Latency from the request's head to the last byte of the response.
    pub latency: Latency,
}

/// Counts of each route one second ago.
#[derive(Default)]
pub(crate) struct Routes(Before<String, Counted>);

/// Responses, disconnected clients, and latencies.
///
/// Latencies are `None` for a route above the maximum number.
type Counted = (Labelled, u64, Option<Counts>);

/// Responses of one second.
pub(crate) struct Answers {
    /// Responses of all routes.
    pub(crate) codes: Labelled,
    /// Requests of these whose client disconnected before a response began.
    pub(crate) left: u64,
    /// The busiest routes.
    pub(crate) routes: Vec<RouteSample>,
}

impl Routes {
    /// Responses of the last second.
    pub(crate) fn sample(&mut self, gateway: &Gateway) -> Answers {
        self.0.begin();
        let (mut all, mut left, mut routes) = (Labelled::new(), 0, Vec::new());
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
