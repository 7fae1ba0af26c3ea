//! Names the routes whose costs a gateway learns at run time.
//!
//! The cost of a request is the number of requests as which it counts in its limits. A gateway can
//! learn it from response times, which commands that work offline cannot.

use config::{Route, Settings};

/// Names the routes with learned costs, such as `the cost of /report is learned`.
///
/// Considers only routes for which `concerns` is true. Returns `None` if none has a learned cost.
pub fn learned_costs<'s>(
    settings: &'s Settings,
    concerns: impl Fn(&Route) -> bool + 's,
) -> Option<String> {
    let routes = settings.routes.iter();
    let mut learned = routes.filter(|route| route.cost.learned().is_some() && concerns(route));
    let first = learned.next()?.name();
    Some(match learned.count() {
        0 => format!("the cost of {first} is learned"),
        more => format!("the costs of {first} and {more} more routes are learned"),
    })
}
