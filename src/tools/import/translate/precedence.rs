//! Orders the routes of a server so that drip finds the same one as nginx.
//!
//! Both compare exact paths, then regular expressions in order, then prefixes, the longest first.
//! nginx also skips regular expressions if the longest prefix of the path has `^~`. drip cannot
//! skip them, so such prefixes become regular expressions at the right position.

use std::cmp::Reverse;

use super::expression;
use super::route::{Action, Location, Pattern};

/// Position of a location among the routes. Locations of the same rank keep their order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A regular expression that refuses requests, if a prefix without `^~` is an early prefix.
    RefusingRegex,
    /// A prefix that becomes a regular expression before the others. Longer ones come first.
    EarlyPrefix(Reverse<usize>),
    /// An exact path, any other regular expression, or a prefix that stays a prefix.
    Unchanged,
    /// A prefix that becomes a regular expression after the others. Longer ones come first.
    LatePrefix(Reverse<usize>),
}

/// Returns the locations in an equivalent order, with patterns that drip supports.
///
/// `outranks_regexes`: other routes, such as those for any host, have regular expressions. These
/// must not take requests of `locations`, so all prefixes become regular expressions, too.
pub(super) fn order_routes<'n>(
    locations: &[Location<'n>],
    outranks_regexes: bool,
) -> Vec<Location<'n>> {
    let mut routes = locations.to_vec();
    if !outranks_regexes && !routes.iter().any(|route| route.regex().is_some()) {
        return routes;
    }
    let has_nested = note_nested(locations);
    let rank = |location: &Location| match &location.pattern {
        Pattern::Regex(_) if has_nested && !matches!(location.action, Action::Forward(_)) => {
            Rank::RefusingRegex
        }
        Pattern::Prefix {
            path,
            skips_regexes,
        } if *skips_regexes || is_nested(path, locations) => Rank::EarlyPrefix(Reverse(path.len())),
        Pattern::Prefix { path, .. } if outranks_regexes => Rank::LatePrefix(Reverse(path.len())),
        _ => Rank::Unchanged,
    };
    routes.sort_by_cached_key(rank);
    for route in &mut routes {
        if matches!(rank(route), Rank::EarlyPrefix(_) | Rank::LatePrefix(_)) {
            let path = route.prefix().unwrap_or_default();
            route.pattern = Pattern::Regex(expression::prefix(path));
        }
    }
    drop_unreachable(routes)
}

/// Removes regular expressions that equal an earlier one, and notes each.
///
/// A prefix that became a regular expression may equal that of another location, or the one that
/// refuses the requests of a nested location.
fn drop_unreachable(routes: Vec<Location>) -> Vec<Location> {
    let mut reachable: Vec<Location> = Vec::with_capacity(routes.len());
    for route in routes {
        match reachable.iter().find(|it| it.pattern == route.pattern) {
            Some(earlier) if route.regex().is_some() => {
                let at = &earlier.at;
                route.at.note(format!(
                    "this location gets no requests: the route of {at} takes them"
                ));
            }
            _ => reachable.push(route),
        }
    }
    reachable
}

/// Returns whether a prefix is nested in a shorter one that has `^~`.
fn is_nested(path: &str, locations: &[Location]) -> bool {
    locations.iter().any(|other| match &other.pattern {
        Pattern::Prefix {
            path: outer,
            skips_regexes: true,
        } => path.len() > outer.len() && path.starts_with(&**outer),
        _ => false,
    })
}

/// Notes the prefixes without `^~` that are nested in one with it. Returns whether there are any.
fn note_nested(locations: &[Location]) -> bool {
    let mut has_nested = false;
    for location in locations {
        if let Pattern::Prefix {
            path,
            skips_regexes: false,
        } = &location.pattern
            && is_nested(path, locations)
        {
            has_nested = true;
            location.at.note(format!("location {path} is nested in a location with ^~, so nginx compares it with no regular expression; in drip those that refuse come first"));
        }
    }
    has_nested
}

/// Returns the route that takes a path: the first regular expression, else the longest prefix.
pub(super) fn find_by_path<'l, 'n>(
    routes: &'l [Location<'n>],
    path: &str,
) -> Option<&'l Location<'n>> {
    let matches = |text| expression::matches(text, path);
    let by_regex = routes
        .iter()
        .find(|route| route.regex().is_some_and(matches));
    by_regex.or_else(|| find_by_prefix(routes, path))
}

/// Returns the route with the longest prefix of a path.
pub(super) fn find_by_prefix<'l, 'n>(
    routes: &'l [Location<'n>],
    path: &str,
) -> Option<&'l Location<'n>> {
    let matching = routes
        .iter()
        .filter_map(|route| Some((route.prefix()?, route)));
    let matching = matching.filter(|(prefix, _)| path.starts_with(prefix));
    matching
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|(_, route)| route)
}

/// Returns whether a route takes every path.
pub(in crate::import) fn takes_every_path(location: &Location) -> bool {
    match &location.pattern {
        Pattern::Prefix { path, .. } => path == "/",
        Pattern::Regex(text) => *text == expression::prefix("/"),
        Pattern::Exact(_) => false,
    }
}
