//! Orders the routes of a server so that drip finds the same one as nginx.
//!
//! Both compare exact paths, then regular expressions in order, then prefixes, the longest first.
//! nginx also skips regular expressions if the longest prefix of the path has `^~`. drip cannot
//! skip them, so such prefixes become regular expressions at the right position.

use super::expression;
use super::route::{Location, Pattern};

/// Converts locations to routes with patterns that drip supports, in an equivalent order.
///
/// `outranks_regexes`: other routes, such as those for any host, have regular expressions. These
/// must not take requests of `locations`, so all prefixes become regular expressions, too.
pub(super) fn ordered<'n>(locations: &[Location<'n>], outranks_regexes: bool) -> Vec<Location<'n>> {
    let has_regex = locations.iter().any(|it| it.regex().is_some());
    if !has_regex && !outranks_regexes {
        return locations.to_vec();
    }
    let (early, nested) = early_prefixes(locations);
    let is_first = |it: &Location| match &it.pattern {
        Pattern::Regex(_) => !nested.is_empty() && it.action.refuses(),
        Pattern::Prefix { path, .. } => early.contains(&&**path),
        Pattern::Exact(_) => false,
    };
    for path in &nested {
        if let Some(location) = locations.iter().find(|it| it.prefix() == Some(path)) {
            location.at.note(format!("location {path} is nested in a location with ^~, so nginx compares it with no regular expression; in drip those that refuse come first"));
        }
    }
    let mut first: Vec<&Location> = locations.iter().filter(|it| is_first(it)).collect();
    // Regular expressions that refuse come first, in their order. Longer prefixes precede shorter.
    first.sort_by_key(|it| it.prefix().map(longest_first));
    let mut routes: Vec<Location> = first.into_iter().map(as_regex).collect();
    let rest = locations.iter().filter(|it| !is_first(it));
    if !outranks_regexes {
        routes.extend(rest.cloned());
        return routes;
    }
    let (mut prefixes, others): (Vec<_>, Vec<_>) = rest.partition(|it| it.prefix().is_some());
    prefixes.sort_by_key(|it| longest_first(it.prefix().unwrap_or_default()));
    routes.extend(others.into_iter().cloned());
    routes.extend(prefixes.into_iter().map(as_regex));
    routes
}

/// Returns a sort key that puts longer prefixes first.
fn longest_first(path: &str) -> usize {
    usize::MAX - path.len()
}

/// Returns the prefixes that must precede regular expressions, and those of them without `^~`.
///
/// A prefix without `^~` is among them if it is nested in a prefix with `^~`.
fn early_prefixes<'l>(locations: &'l [Location]) -> (Vec<&'l str>, Vec<&'l str>) {
    let (mut early, mut nested) = (Vec::new(), Vec::new());
    for location in locations {
        let Pattern::Prefix { path, stops } = &location.pattern else {
            continue;
        };
        let is_nested = locations.iter().any(|other| match &other.pattern {
            Pattern::Prefix {
                path: outer,
                stops: true,
            } => path.len() > outer.len() && path.starts_with(&**outer),
            _ => false,
        });
        if *stops || is_nested {
            early.push(&**path);
        }
        if is_nested && !*stops {
            nested.push(&**path);
        }
    }
    (early, nested)
}

/// Returns the same location as a regular expression.
fn as_regex<'n>(location: &Location<'n>) -> Location<'n> {
    let mut location = location.clone();
    if let Pattern::Prefix { path, .. } = &location.pattern {
        location.pattern = Pattern::Regex(expression::prefix(path));
    }
    location
}

/// Returns the first of these routes that takes a path.
pub(super) fn of_path<'l, 'n>(routes: &'l [Location<'n>], path: &str) -> Option<&'l Location<'n>> {
    let matches = |it: &&Location| {
        it.regex()
            .is_some_and(|text| expression::matches(text, path))
    };
    let regex = routes.iter().find(matches);
    regex.or_else(|| of_prefix(routes, path))
}

/// Returns the route with the longest prefix of a path.
pub(super) fn of_prefix<'l, 'n>(
    routes: &'l [Location<'n>],
    path: &str,
) -> Option<&'l Location<'n>> {
    let takes = |it: &&Location| it.prefix().is_some_and(|prefix| path.starts_with(prefix));
    let all = routes.iter().filter(takes);
    all.max_by_key(|it| it.prefix().map(str::len))
}

/// Returns whether a route takes every path.
pub(in crate::import) fn is_whole(location: &Location) -> bool {
    match &location.pattern {
        Pattern::Prefix { path, .. } => path == "/",
        Pattern::Regex(text) => *text == expression::prefix("/"),
        Pattern::Exact(_) => false,
    }
}
