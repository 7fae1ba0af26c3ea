//! Samples of routes: their responses and latencies in one second.

pub(crate) mod metrics;

use std::cmp::Reverse;

use super::counts::{self, Labelled};
use super::growth::Before;
use super::minute::{self, latency};
use super::plain::Plain;
use super::sample::{RouteSample, Sample};
use crate::http::gateway::Gateway;
use crate::observe::metrics::{Counts, NO_ROUTE, RouteMetrics};

/// Number of the busiest routes in a sample.
const BUSIEST: usize = 20;

/// Takes the samples of routes. Keeps the total counts of each route one second ago.
#[derive(Default)]
pub(crate) struct Routes(Before<String, Counted>);

/// Responses, disconnected clients, and latencies.
///
/// Latencies are `None` for routes beyond the maximum number.
type Counted = (Labelled, u64, Option<Counts>);

impl Routes {
    /// Adds the responses of the last second to a sample.
    pub(crate) fn sample(&mut self, gateway: &Gateway, to: &mut Sample) {
        self.0.begin();
        for (name, metrics) in routes_by_name(gateway) {
            // Routes with the same host and path have one name, and count together.
            if self.0.has(&name) {
                continue;
            }
            let is_kept = self.0.len() < minute::MAX_KEPT;
            let latencies = is_kept.then(|| metrics.durations.counts());
            let now = (counts::codes(metrics), counts::left(metrics), latencies);
            let (codes, left, latencies) = self.0.since(name.clone(), now);
            to.left += left;
            counts::add(&mut to.codes, &codes);
            if !codes.is_empty() {
                to.routes.push(RouteSample {
                    name: Plain::new(&name),
                    codes,
                    latency: latencies.as_ref().map(latency).unwrap_or_default(),
                });
            }
        }
        let responses = |route: &RouteSample| route.codes.values().sum::<u64>();
        to.routes.sort_by_key(|route| Reverse(responses(route)));
        to.routes.truncate(BUSIEST);
    }
}

/// Returns the names and metrics of the routes, in the order of the file.
///
/// The first one counts requests that matched no route.
fn routes_by_name(gateway: &Gateway) -> impl Iterator<Item = (String, &RouteMetrics)> {
    let unrouted = (NO_ROUTE.to_owned(), gateway.no_route_metrics());
    std::iter::once(unrouted).chain(gateway.counted_routes())
}
