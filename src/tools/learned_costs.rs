//! Names the routes whose costs a gateway learns at run time.

use config::{Route, Settings};

/// Names the routes with learned costs, which offline commands cannot know.
///
/// An example is `the cost of /report is learned`. Returns `None` without such a route.
pub fn learned_costs<'s>(
    settings: &'s Settings,
    concerns: impl Fn(&Route) -> bool + 's,
) -> Option<String> {
    let routes = settings.routes.iter();
    let mut learned = routes.filter(|it| it.cost.learned().is_some() && concerns(it));
    let first = learned.next()?.name();
    Some(match learned.count() {
        0 => format!("the cost of {first} is learned"),
        more => format!("the costs of {first} and {more} more routes are learned"),
    })
}
