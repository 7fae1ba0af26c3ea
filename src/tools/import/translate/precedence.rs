//! The order in which drip finds the routes of a server as nginx finds its locations.
//!
//! Both compare exact paths, then regular expressions in their order, then prefixes, the longest
//! first. But nginx compares no regular expression with a path whose longest prefix has `^~`. In
//! drip such prefixes become regular expressions, too, in the right order.

use super::expression;
use super::route::{Location, Pattern};
use crate::import::notes::Notes;

/// The locations as routes: with patterns that drip has, in an order that has the same effect.
///
/// `alone`: no other routes take requests of these, not even by regular expressions of any host.
pub(super) fn ordered(locations: &[Location], alone: bool, notes: &mut Notes) -> Vec<Location> {
    let has_regex = locations.iter().any(|it| it.regex().is_some());
    if !has_regex && !alone {
        return locations.to_vec();
    }
    let (pinned, lost) = pinned(locations);
    let is_first = |it: &Location| match &it.pattern {
        Pattern::Regex(_) => !lost.is_empty() && it.action.refuses(),
        Pattern::Prefix { path, .. } => pinned.contains(&&**path),
        Pattern::Exact(_) => false,
    };
    for path in &lost {
        if let Some(location) = locations.iter().find(|it| it.prefix() == Some(path)) {
            notes.add(location.place, format!("location {path} is part of a location that keeps regular expressions off; in drip only those that refuse go before it"));
        }
    }
    let mut first: Vec<&Location> = locations.iter().filter(|it| is_first(it)).collect();
    // Those that refuse come first, in their order.
    first.sort_by_key(|it| it.prefix().map(before));
    let mut routes: Vec<Location> = first.into_iter().map(as_regex).collect();
    let rest = locations.iter().filter(|it| !is_first(it));
    if !alone {
        routes.extend(rest.cloned());
        return routes;
    }
    let (mut prefixes, others): (Vec<_>, Vec<_>) = rest.partition(|it| it.prefix().is_some());
    prefixes.sort_by_key(|it| before(it.prefix().unwrap_or_default()));
    routes.extend(others.into_iter().cloned());
    routes.extend(prefixes.into_iter().map(as_regex));
    routes
}

/// Sorts longer prefixes first.
fn before(path: &str) -> usize {
    usize::MAX - path.len()
}

/// The prefixes that must go before regular expressions, and those of them that have no `^~`.
fn pinned(locations: &[Location]) -> (Vec<&str>, Vec<&str>) {
    let (mut pinned, mut lost) = (Vec::new(), Vec::new());
    for location in locations {
        let Pattern::Prefix { path, stops } = &location.pattern else {
            continue;
        };
        let is_beneath = locations.iter().any(|other| match &other.pattern {
            Pattern::Prefix {
                path: outer,
                stops: true,
            } => path.len() > outer.len() && path.starts_with(&**outer),
            _ => false,
        });
        if *stops || is_beneath {
            pinned.push(&**path);
        }
        if is_beneath && !*stops {
            lost.push(&**path);
        }
    }
    (pinned, lost)
}

/// The same location, found among the regular expressions.
fn as_regex(location: &Location) -> Location {
    let mut location = location.clone();
    if let Pattern::Prefix { path, .. } = &location.pattern {
        location.pattern = Pattern::Regex(expression::prefix(path));
    }
    location
}

/// The route of these, in their order, that takes a path.
pub(super) fn of_path<'l>(routes: &'l [Location], path: &str) -> Option<&'l Location> {
    let matches = |it: &&Location| {
        it.regex()
            .is_some_and(|text| expression::matches(text, path))
    };
    let regex = routes.iter().find(matches);
    regex.or_else(|| of_prefix(routes, path))
}

/// The route of these with the longest prefix of a path.
pub(super) fn of_prefix<'l>(routes: &'l [Location], path: &str) -> Option<&'l Location> {
    let takes = |it: &&Location| it.prefix().is_some_and(|prefix| path.starts_with(prefix));
    let all = routes.iter().filter(takes);
    all.max_by_key(|it| it.prefix().map(str::len))
}

/// Whether a route takes every path.
pub(in crate::import) fn is_whole(location: &Location) -> bool {
    match &location.pattern {
        Pattern::Prefix { path, .. } => path == "/",
        Pattern::Regex(text) => *text == expression::prefix("/"),
        Pattern::Exact(_) => false,
    }
}
