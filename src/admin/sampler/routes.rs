use std::cmp::Reverse;
use std::collections::HashMap;

use super::gate::grown;
use crate::admin::counts;
use crate::admin::minute::{self, latency};
use crate::admin::views::{Codes, Latency, Plain, RouteSample};
use crate::http::gateway::Gateway;
use crate::observe::metrics::{Counts, NO_ROUTE, RouteMetrics};

/// How many of the busiest routes are in a sample.
const BUSIEST: usize = 20;

/// The counts of each route one second ago.
#[derive(Default)]
pub(super) struct Routes(HashMap<String, Counted>);

/// The answers of one second.
pub(super) struct Answers {
    /// Of all routes.
    pub(super) codes: Codes,
    /// Of these, requests whose client left before a response began.
    pub(super) left: u64,
    /// Of the busiest routes.
    pub(super) routes: Vec<RouteSample>,
}

struct Counted {
    codes: Codes,
    left: u64,
    /// `None` for a route that is one too many.
    latencies: Option<Counts>,
}

impl Routes {
    /// The answers of the last second.
    pub(super) fn sample(&mut self, gateway: &Gateway) -> Answers {
        let mut before = std::mem::take(&mut self.0);
        let (mut all, mut left, mut routes) = (Codes::new(), 0, Vec::new());
        for (name, metrics) in named(gateway) {
            // Routes with the same host and path count together.
            if self.0.contains_key(&name) {
                continue;
            }
            let now = Counted {
                codes: counts::codes(metrics),
                left: counts::left(metrics),
                latencies: (self.0.len() < minute::MOST).then(|| metrics.latencies()),
            };
            let past = before.remove(&name);
            left += match &past {
                Some(past) => now.left.saturating_sub(past.left),
                None => now.left,
            };
            let sample = RouteSample {
                name: Plain::new(&name),
                codes: match &past {
                    Some(past) => grown(&now.codes, &past.codes),
                    None => now.codes.clone(),
                },
                latency: since(&now, past.as_ref()),
            };
            self.0.insert(name, now);
            counts::add(&mut all, &sample.codes);
            if !sample.codes.is_empty() {
                routes.push(sample);
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

/// What requests are counted under: routes in the order of the file, and what stands for requests that no route took.
fn named(gateway: &Gateway) -> impl Iterator<Item = (String, &RouteMetrics)> {
    let unrouted = (NO_ROUTE.to_owned(), gateway.no_route_metrics());
    std::iter::once(unrouted).chain(gateway.counted_routes())
}

fn since(now: &Counted, past: Option<&Counted>) -> Latency {
    let Some(latencies) = &now.latencies else {
        return Latency::default();
    };
    match past.and_then(|past| past.latencies.as_ref()) {
        Some(past) => latency(&latencies.since(past)),
        None => latency(latencies),
    }
}
